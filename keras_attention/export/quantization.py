"""The quantizations of LiteRT files: how weights are stored, and which errors are tolerated."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Quantization:
    """A way to store the weights of a file, and the required accuracy of its outputs.

    Attributes:
        name: str or None, the value of `quantization` in `to_litert`.
        weight_dtype: str, the dtype of the stored weights.
        mask_constant: float, the value that masks add to attention scores.
        weight_ratio: float, the size of the stored weights relative to float32.
        peak_ratio: float, the size of the largest intermediate file relative to float32.
        tolerance: float, the maximum absolute error, relative to the largest absolute output (or to
            1 if that is smaller). None if `agreement` and `cosine` are checked instead.
        agreement: float, the minimum share of positions where file and model have the same argmax,
            on the user's examples. None does not check it.
        cosine: float, the minimum mean cosine between vectors of the file and of the model, on the
            user's examples. None does not check it.
        quantizes_activations: bool, whether activations are quantized, too, with ranges that are
            measured on calibration data.
        advice: str, a sentence that is added to the messages of errors about accuracy.
    """

    name: str | None
    weight_dtype: str
    mask_constant: float
    weight_ratio: float
    peak_ratio: float
    tolerance: float | None = None
    agreement: float | None = None
    cosine: float | None = None
    quantizes_activations: bool = False
    advice: str = ""

    @property
    def has_scales(self):
        """Return whether weights are stored as integers with scales."""
        return self.weight_dtype in ("int8", "int4")


# Measured errors are an order of magnitude below the tolerances.
FLOAT32 = Quantization(
    name=None,
    weight_dtype="float32",
    mask_constant=-1e9,
    weight_ratio=1.0,
    peak_ratio=1.0,
    tolerance=1e-4,
)
FLOAT16 = Quantization(
    name="float16",
    weight_dtype="float16",
    mask_constant=-1e4,  # the largest float16 is 65504
    weight_ratio=0.5,
    peak_ratio=0.5,
    tolerance=1e-2,
)
# For trained classifiers, the measured agreement is 1.0 with int8 weights, and at least 0.97 with
# full int8. For vectors, the measured cosine is at least 0.99.
INT8_WEIGHTS = Quantization(
    name="int8_weights",
    weight_dtype="int8",
    mask_constant=-1e9,
    weight_ratio=0.3,  # biases and norms stay in float32
    peak_ratio=0.26,
    agreement=0.9,
    cosine=0.98,
)
# Int4 is held to a higher agreement than int8, because its errors are more than rounding.
INT4_WEIGHTS = Quantization(
    name="int4_weights",
    weight_dtype="int4",
    mask_constant=-1e9,
    weight_ratio=0.3,  # embedding tables are int8
    peak_ratio=0.26,  # the converter writes int8
    agreement=0.95,
    cosine=0.98,
    advice=' Use quantization="int8_weights", which is more accurate.',
)
INT8 = Quantization(
    name="int8",
    weight_dtype="int8",
    # The constant determines the scale of the scores. With -1e4 all scores would be rounded to a
    # few levels, and the agreement would fall to 0.64.
    mask_constant=-100.0,
    weight_ratio=0.3,
    peak_ratio=1.0,  # the calibrated file
    agreement=0.8,
    cosine=0.95,  # text encoders with a few very large activations fail this check (0.73)
    quantizes_activations=True,
    advice=' Use quantization="int8_weights", which leaves the activations in floats.',
)

QUANTIZATIONS = {one.name: one for one in (FLOAT32, FLOAT16, INT8_WEIGHTS, INT4_WEIGHTS, INT8)}


def get_quantization(name):
    """Return the `Quantization` called `name`. Raise a ValueError for an unknown name."""
    if name not in QUANTIZATIONS:
        names = ", ".join(map(repr, QUANTIZATIONS))
        raise ValueError(f"quantization={name!r} is unknown. Use one of {names}.")
    return QUANTIZATIONS[name]


def find_quantization(dtypes):
    """Return the `Quantization` of a file, as far as the dtypes of its constants reveal it.

    `dtypes` is a set of str. For a file in full int8, the result is `INT8_WEIGHTS`, because the
    dtypes are the same.
    """
    for one in (INT4_WEIGHTS, INT8_WEIGHTS, FLOAT16):
        if one.weight_dtype in dtypes:
            return one
    return FLOAT32
