"""Models that generate, as files: `encode`, `step`, `generate` and `beam` over one set of weights."""
