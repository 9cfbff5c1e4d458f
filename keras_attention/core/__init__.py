"""Code that all folders share: parts, checks, scopes, registration, and Keras's private names."""
