"""Files that apps copy: each runs by itself, and imports nothing else of this package."""
