"""Readers, one file for each format: files or TensorFlow datasets to lists of examples."""
