"""The architectures of checkpoints, each a file: what it is built of, and where its tensors go."""
