"""Shared by all folders: parts, checks, scopes, registered names, private names of Keras."""
