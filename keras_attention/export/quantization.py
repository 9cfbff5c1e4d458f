"""The quantizations of LiteRT files: what each stores, and what its files are held to."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Quantization:
    """One way to store the weights of a file, and everything that follows from it.

    Attributes:
        name: str or None, as `to_litert` takes it.
        weight_dtype: str, of the weights that are stored.
        mask_constant: float, what masks add to scores.
        weight_ratio: float, bytes of the stored weights per byte of them in float32.
        peak_ratio: float, the same of the largest file on the way to the final one.
        tolerance: float, the largest absolute error allowed, per unit of the largest output (at
            least 1); None where files are held to an agreement instead.
        agreement: float, the least share of positions with the model's largest entry, on given
            examples; None where a tolerance says it all.
        cosine: float, the least mean cosine of vectors with the model's, on given examples; None
            where a tolerance says it all.
        quantizes_activations: bool, whether activations are rounded, too, by ranges that are
            measured on calibration data.
        advice: str, a way out for the end of an error.
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
        """Whether weights are integers with scales."""
        return self.weight_dtype == "int8"


# The runtimes reach the tolerances with an order of magnitude to spare.
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
    mask_constant=-1e4,  # float16 ends at 65504
    weight_ratio=0.5,
    peak_ratio=0.5,
    tolerance=1e-2,
)
# Trained classifiers keep an agreement of 1.0 with int8 weights and of 0.97 or more in full int8;
# vectors keep a cosine of 0.99 or more.
INT8_WEIGHTS = Quantization(
    name="int8_weights",
    weight_dtype="int8",
    mask_constant=-1e9,
    weight_ratio=0.3,  # biases and norms stay in float32
    peak_ratio=0.26,
    agreement=0.9,
    cosine=0.98,
)
INT8 = Quantization(
    name="int8",
    weight_dtype="int8",
    # The constant sets the scale of the scores: -1e4 leaves no levels for the scores themselves,
    # and takes the agreement down to 0.64.
    mask_constant=-100.0,
    weight_ratio=0.3,
    peak_ratio=1.0,  # the file that is calibrated
    agreement=0.8,
    cosine=0.95,  # 0.73 for a text encoder whose activations have a few very large entries
    quantizes_activations=True,
    advice=' Use quantization="int8_weights", which leaves the activations in floats.',
)

QUANTIZATIONS = {one.name: one for one in (FLOAT32, FLOAT16, INT8_WEIGHTS, INT8)}


def get_quantization(name):
    """The `Quantization` called `name`; a ValueError for an unknown name lists the known ones."""
    if name not in QUANTIZATIONS:
        known = ", ".join(map(repr, QUANTIZATIONS))
        raise ValueError(f"quantization={name!r} is unknown. Known: {known}.")
    return QUANTIZATIONS[name]


def find_quantization(dtypes):
    """Return the `Quantization` of a file with constants of `dtypes`, a set of str.

    Both kinds of int8 store the same; they count as `INT8_WEIGHTS`.
    """
    for one in (INT8_WEIGHTS, FLOAT16):
        if one.weight_dtype in dtypes:
            return one
    return FLOAT32
