"""Measure how a quantized decoder differs from its model on real text, at each position.

Two generated sequences cannot be compared after the first token that differs. So both the file
(with its cache) and the model read the same tokens (teacher forcing), and the next tokens that both
predict are compared.
"""

import numpy as np

from keras_attention.export.checks.report import Drift
from keras_attention.export.errors import ExportError
from keras_attention.export.generation.reference import compute_logits, split_batch
from keras_attention.export.generation.step_reader import StepReader

LONGEST = 256  # maximum number of positions that are compared


def measure_drift(path, plan, quantization):
    """Measure how a LiteRT file differs from its model on the user's examples, and check it.

    Args:
        path: path of the file.
        plan: `GenerationPlan`, which contains the examples. None if the model does not generate
            text.
        quantization: `Quantization`, which contains the required agreement.

    Returns:
        A `Drift`, or None if the plan has no examples.

    Raises:
        ExportError: a quantized file predicts other tokens than the model too often. A single
            different token is accepted, because examples may be very short.
    """
    if plan is None or not plan.examples:
        return None
    drift = compare_texts(path, plan)
    least = quantization.agreement
    differing = round(sum(drift.tokens) * (1.0 - drift.agreement))
    if least is not None and drift.agreement < least and differing > 1:
        raise ExportError(
            "The quantized file generates other text than the model. After the same tokens, both "
            f"choose the same next token in {drift.agreement:.3f} of the positions. Required is "
            f"{least}.{quantization.advice or ' Use another quantization.'}"
        )
    return drift


def compare_texts(path, plan):
    """Return the `Drift`, the difference of a LiteRT file from its model on all examples of a plan.

    `path` is the path of the file. `plan` is a `GenerationPlan`, with the model and the examples.
    """
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
    used = counted > 0
    return Drift(
        tokens=tuple(counted[used].tolist()),
        argmax_agreement=tuple((same[used] / counted[used]).tolist()),
        max_abs_error=tuple(error[used].tolist()),
    )
