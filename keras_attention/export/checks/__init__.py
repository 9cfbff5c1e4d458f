"""Checks of an exported file: parity with the model, runtimes, and the report."""
