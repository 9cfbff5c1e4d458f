"""Preprocessors, one file for each task: examples to model inputs, and outputs to answers."""
