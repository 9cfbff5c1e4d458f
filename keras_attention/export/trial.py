"""A LiteRT file in the stock runtime, against the model, with and without XNNPACK."""

from keras_attention.export import batches, compare, runner
from keras_attention.export.errors import ExportError

# XNNPACK takes the ops it knows from the reference kernels, and either may be wrong alone.
_RUNTIMES = {"LiteRT": True, "LiteRT without XNNPACK": False}


def run(path, endpoint, cases, quantization=None):
    """A list of `Parity` over all cases; what is too far off is an ExportError."""
    parity = []
    for runtime, xnnpack in _RUNTIMES.items():
        execute = runner.LiteRT(path, endpoint.name, xnnpack=xnnpack)
        for case in cases:
            outputs = _outputs(execute, case, runtime)
            measured = compare.measure(case, outputs, signature=endpoint.name, runtime=runtime)
            compare.check(
                case,
                measured,
                tolerance=compare.TOLERANCE.get(quantization),
                agreement=compare.AGREEMENT.get(quantization) if case.real else None,
            )
            parity += measured
    return parity


def notes(parity, quantization):
    """Warns of a low agreement, which on made-up inputs is no proof of a fault."""
    floor = compare.AGREEMENT.get(quantization)
    shares = [p.argmax_agreement for p in parity if p.argmax_agreement is not None]
    if floor is None or min(shares, default=1.0) >= floor:
        return []
    return [
        f"the quantized file agrees with the model in only {min(shares):.3f} of the positions; "
        "pass examples= to see whether that holds for real inputs"
    ]


def _outputs(execute, case, runtime):
    try:
        return execute(case.inputs)
    except (RuntimeError, ValueError) as error:
        reason = str(error).strip().splitlines()
        raise ExportError(
            f"{runtime} cannot run the file on {batches.describe(case.inputs)}: "
            f"{reason[0] if reason else error!r}"
        ) from error
