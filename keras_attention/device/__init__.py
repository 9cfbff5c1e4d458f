"""Files to copy into apps: each runs by itself and imports nothing else from this package."""
