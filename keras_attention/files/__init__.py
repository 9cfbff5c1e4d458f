"""Files of a model, written whole or not at all and read with bounds, and optional libraries."""
