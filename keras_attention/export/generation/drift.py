"""The drift of a quantized decoder from its model on real text, position by position.

Free-running comparisons say little: after the first token that differs, two texts have nothing to
do with one another. Teacher-forced, both read the same tokens, the file through its cache, and the
next token that each would choose is compared.
"""

import numpy as np

from keras_attention.export.checks.report import Drift
from keras_attention.export.errors import ExportError
from keras_attention.export.generation.reference import compute_logits, split_batch
from keras_attention.export.generation.step_reader import StepReader

LONGEST = 256  # positions; a report is no evaluation


def measure_drift(path, plan, quantization):
    """Return the `Drift` of the LiteRT file at `path` on the examples of `plan`.

    Args:
        plan: `GenerationPlan`, or None.
        quantization: `Quantization`.

    Returns:
        `Drift`, or None where there are no examples.

    Raises:
        ExportError: where a quantized file would too often go on with another token. One token
            alone is no measure: of six, which is what two sounds of noise give, it is a sixth.
    """
    if plan is None or not plan.examples:
        return None
    drift = compare_texts(path, plan)
    least = quantization.agreement
    others = round(sum(drift.tokens) * (1.0 - drift.agreement))
    if least is not None and drift.agreement < least and others > 1:
        raise ExportError(
            "The quantized file writes other texts than the model: after the same tokens of the "
            f"examples it goes on alike in {drift.agreement:.3f} of the positions; {least} is the "
            "least allowed."
        )
    return drift


def compare_texts(path, plan):
    """Return the `Drift` of a file on all examples of `plan`."""
    decoder, padding = plan.decoder, plan.padding.id
    reader = StepReader(path, decoder.has_source)
    length = min(LONGEST, plan.max_length)
    counted, same, error = np.zeros(length, int), np.zeros(length, int), np.zeros(length)
    for batch in plan.examples:
        tokens, source = split_batch(decoder, batch)
        tokens = tokens[:, :length]
        expected = compute_logits(decoder, tokens, source)
        for rows in reader.split_rows(len(tokens)):
            part = None if source is None else {name: x[rows] for name, x in source.items()}
            cache = reader.start(len(tokens[rows]), part)
            for i in range(tokens.shape[1]):
                logits, cache = reader.read(tokens[rows, i : i + 1], i, cache)
                logits = logits[:, 0]
                real, own = tokens[rows, i] != padding, expected[rows, i]
                counted[i] += real.sum()
                same[i] += (logits.argmax(-1) == own.argmax(-1))[real].sum()
                error[i] = max(error[i], np.abs(logits - own).max(-1)[real].max(initial=0.0))
    kept = counted > 0
    return Drift(
        tokens=tuple(counted[kept].tolist()),
        argmax_agreement=tuple((same[kept] / counted[kept]).tolist()),
        max_abs_error=tuple(error[kept].tolist()),
    )
