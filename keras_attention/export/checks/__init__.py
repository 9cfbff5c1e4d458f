"""Checks of a file before it is moved to its place: parity, runtimes, and the report."""
