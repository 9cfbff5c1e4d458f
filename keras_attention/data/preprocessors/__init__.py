"""Preprocessors, one file for each task: examples to arrays of a model, and outputs to answers."""
