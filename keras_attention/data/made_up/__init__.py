"""Generated datasets: dates, facts, and recordings of several digits."""
