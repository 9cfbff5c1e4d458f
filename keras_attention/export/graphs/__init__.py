"""Read LiteRT files as graphs, and rewrite these graphs before the files are checked."""
