"""LiteRT files as graphs: read, and rewritten before they are checked."""
