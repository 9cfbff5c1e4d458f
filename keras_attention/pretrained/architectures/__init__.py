"""Modules that each tell how to read one kind of checkpoint: its settings and its tensors."""
