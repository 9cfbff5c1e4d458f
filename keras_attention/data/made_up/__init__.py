"""Data sets that are generated: dates, facts, and recordings of several digits."""
