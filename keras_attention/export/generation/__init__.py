"""Export of models that generate text, with the signatures `encode`, `step`, `generate`, `beam`."""
