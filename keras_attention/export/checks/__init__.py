"""What is measured before a file is moved to its place: parity, runtimes, and the report."""
