"""Models that generate, as files: `encode`, `step`, `generate`, `beam` over one copy of weights."""
