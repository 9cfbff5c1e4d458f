"""Readers, one file for each format: files and TensorFlow data sets become lists of examples."""
