"""Files of a model: written whole or not at all, read with bounds; optional libraries."""
