"""The contract that every layer keeps, as one function for each clause.

`tests/test_contract.py` holds a case for every registered layer, and fails for one that has none.
"""

import dataclasses
import inspect
import re
import warnings

import keras
import numpy as np

from keras_attention.core import keras_internals
from keras_attention.core.weight_axes import find_axes
from tests import gradients

SIZES = {"B": 2, "T": 5, "S": 7}
OTHER_SIZES = {"B": 3, "T": 4, "S": 6}


@dataclasses.dataclass(frozen=True)
class Case:
    """A layer and its inputs.

    Args:
        make: a function without arguments that returns a new layer.
        inputs: one string for each call argument, such as `"B T 12"`. The letters are sizes
            that a symbolic call does not know. `"int30 B T"` holds ids from 0 to 29, `"bool B T"`
            a mask.
        listed: bool, whether the layer takes the inputs as one list.
        frozen: names of weights that get no gradient here, and why.
    """

    make: object
    inputs: tuple
    listed: bool = False
    frozen: dict = dataclasses.field(default_factory=dict)

    def arrays(self, sizes=None, seed=0):
        random = np.random.default_rng(seed)
        return [_draw(random, *_parse(spec, sizes or SIZES)) for spec in self.inputs]

    def symbols(self, sizes=None):
        """Return Keras inputs, with None or the number in `sizes` for each letter."""
        result = []
        for i, spec in enumerate(self.inputs):
            dtype, shape = _parse(spec, sizes or dict.fromkeys(SIZES))
            dtype = "int32" if dtype.startswith("int") else dtype
            result.append(keras.Input(batch_shape=shape, dtype=dtype, name=f"input_{i}"))
        return result

    def call(self, layer, inputs, **kwargs):
        return layer(list(inputs), **kwargs) if self.listed else layer(*inputs, **kwargs)

    def model(self, layer=None, sizes=None):
        inputs = self.symbols(sizes)
        return keras.Model(inputs, self.call(layer or self.make(), inputs))


def _parse(spec, sizes):
    words = spec.split()
    dtype = "float32"
    if words[0].startswith(("int", "bool")):
        dtype, *words = words
    return dtype, tuple(sizes[word] if word in sizes else int(word) for word in words)


def _draw(random, dtype, shape):
    if dtype == "float32":
        return random.normal(size=shape).astype("float32")
    if dtype == "bool":
        drawn = random.random(shape) < 0.7
        drawn[:, 0] = True
        return drawn
    drawn = random.integers(1, int(dtype[3:]), size=shape).astype("int32")
    drawn[..., -1] = 0  # padding
    return drawn


def check_config(case):
    """Check that the config holds every constructor argument, and makes an equal layer."""
    layer = case.make()
    config = layer.get_config()
    arguments = {
        name
        for cls in type(layer).__mro__[:1]
        for name, parameter in inspect.signature(cls.__init__).parameters.items()
        if name != "self" and parameter.kind is not parameter.VAR_KEYWORD
    }
    missing = arguments - set(config)
    assert not missing, f"{type(layer).__name__}.get_config lacks {missing}"
    again = type(layer).from_config(config)
    assert again.get_config() == config
    revived = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(layer))
    assert type(revived) is type(layer) and revived.get_config() == config


def check_shapes(case):
    """Check that the symbolic shape equals the eager one, known or unknown, at two sizes."""
    layer = case.make()
    unknown = case.call(layer, case.symbols())
    for sizes in (SIZES, OTHER_SIZES):
        static = case.call(case.make(), case.symbols(sizes))
        eager = case.call(layer, case.arrays(sizes))
        for symbol, loose, value in zip(*map(_flat, (static, unknown, eager)), strict=True):
            assert tuple(symbol.shape) == tuple(value.shape)
            assert symbol.dtype == keras.backend.standardize_dtype(value.dtype)
            assert all(a in (None, b) for a, b in zip(loose.shape, value.shape, strict=True))


def check_missing_axis(case):
    """Features with an axis too few are refused in words, or the layer takes them as they are."""
    first, *later = case.arrays()
    try:
        case.call(case.make(), [first[..., 0], *later])
    except ValueError as error:
        words = "expected|must be of shape|takes|called on|needs|does not fit|adds to"
        assert re.search(words, str(error), re.IGNORECASE), str(error)


def check_saving(case, path):
    """Check that a loaded model, and a new layer with its weights, give the same outputs."""
    model = case.model()
    _randomize(model)
    arrays = case.arrays()
    expected = _flat(model(arrays))
    model.save(path / "model.keras")
    loaded = keras.saving.load_model(path / "model.keras")
    close(_flat(loaded(arrays)), expected, 1e-6)
    model.save_weights(path / "model.weights.h5")
    fresh = case.model()
    fresh.load_weights(path / "model.weights.h5")
    close(_flat(fresh(arrays)), expected, 1e-6)


QUANTIZABLE = (keras.layers.Dense, keras.layers.EinsumDense, keras.layers.Embedding)


def projections(model):
    """Return the layers inside a model that Keras quantizes, whoever made them."""
    return [layer for layer in model._flatten_layers() if isinstance(layer, QUANTIZABLE)]


def quantize(model, mode):
    """Quantize a model. Hide the warnings about layers that are not projections."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.quantize(mode)
    names = [type(layer).__name__ for layer in projections(model)]
    left = [str(w.message) for w in caught if str(w.message).startswith("Layer ")]
    assert not [message for message in left if message.split()[1] in names]


def check_quantization(case, path, mode="int8", tolerance=0.05):
    """Check that `quantize` reaches every projection and table, and that this can be saved."""
    layer = case.make()
    model = case.model(layer)
    _randomize(model, scale=0.3)
    arrays = case.arrays()
    exact = _flat(model(arrays))
    quantize(model, mode)
    quantized = projections(model)
    assert quantized and {layer.quantization_mode for layer in quantized} == {mode}
    if mode == "int8":
        kernels = [
            w for each in quantized for w in each.weights if w.name in ("kernel", "embeddings")
        ]
        assert len(kernels) == len(quantized) and {w.dtype for w in kernels} == {"int8"}
    expected = _flat(model(arrays))
    for ours, theirs in zip(expected, exact, strict=True):
        if "float" in keras.backend.standardize_dtype(theirs.dtype):
            ours, theirs = map(keras.ops.convert_to_numpy, (ours, theirs))
            np.testing.assert_allclose(ours, theirs, atol=tolerance * np.abs(theirs).max(), rtol=0)
    if isinstance(layer, keras.layers.Layer):
        config = layer.get_config()
        assert type(layer).from_config(config).get_config() == config
    model.save(path / "model.keras")
    loaded = keras.saving.load_model(path / "model.keras")
    assert [w.dtype for w in loaded.weights] == [w.dtype for w in model.weights]
    close(_flat(loaded(arrays)), expected, 1e-6)


def check_mixed_precision(case, dtype):
    """Under a mixed policy the output has the compute dtype and is near the float32 one."""
    exact = case.model()
    _randomize(exact, scale=0.3)
    arrays = case.arrays()
    with _policy(f"mixed_{dtype}"):
        mixed = case.model()
    mixed.set_weights(exact.get_weights())
    for ours, theirs in zip(_flat(mixed(arrays)), _flat(exact(arrays)), strict=True):
        if theirs.dtype == "float32" or "float" in str(theirs.dtype):
            assert keras.backend.standardize_dtype(ours.dtype) == dtype
        ours, theirs = (
            keras.ops.convert_to_numpy(keras.ops.cast(x, "float32")) for x in (ours, theirs)
        )
        assert np.all(np.isfinite(ours))
        np.testing.assert_allclose(ours, theirs, atol=0.1, rtol=0.1)


def check_ids(case):
    """Under a mixed policy, ids that are given as floats reach the layer with all their digits."""
    with _policy("mixed_bfloat16"):
        layer = case.make()
    inputs = case.arrays()
    case.call(layer, inputs)  # builds it
    whole = [spec.startswith("int") for spec in case.inputs]
    original, seen = layer.call, []

    def call(*args, **kwargs):
        seen.extend(keras.backend.standardize_dtype(x.dtype) for x in args)
        return original(*args, **kwargs)

    layer.call = call
    case.call(
        layer, [x.astype("float32") if ids else x for x, ids in zip(inputs, whole, strict=True)]
    )
    assert len(seen) == len(whole)
    pairs = enumerate(zip(whole, seen, strict=True))
    wrong = [k for k, (ids, dtype) in pairs if ids and dtype == "bfloat16"]
    assert not wrong, f"argument {wrong[0]} of {type(layer).__name__} is rounded"


def check_gradients(case):
    """Check that every trainable weight gets a finite gradient that is not zero."""
    layer = case.make()
    case.call(layer, case.arrays())
    _randomize(layer)

    def loss():
        outputs = _flat(case.call(layer, case.arrays()))
        return sum(
            keras.ops.sum(keras.ops.multiply(keras.ops.cast(x, "float32"), _upstream(x.shape)))
            for x in outputs
        )

    weights = layer.trainable_weights
    _, values = gradients.value_and_gradients(loss, variables=weights)
    for weight, gradient in zip(weights, values, strict=True):
        if any(name in weight.path for name in case.frozen):
            continue
        fix = f"If this is right, add it to `frozen` of its Case, with the reason: {weight.path}"
        assert gradient is not None, f"A weight gets no gradient. {fix}"
        gradient = keras.ops.convert_to_numpy(gradient)
        assert np.all(np.isfinite(gradient)), weight.path
        assert np.any(gradient != 0), f"The gradient of a weight is zero. {fix}"


def check_axes(model):
    """Check that the axes of every matrix have roles, so that it can be split among devices."""
    named = name_weights(model)
    missing = [path for path, (_, axes, shape) in named.items() if axes is None and len(shape) > 1]
    assert not missing, f"add to weight_axes (keras_attention/core/weight_axes.py): {missing}"


def name_weights(model):
    """{path of a weight: (class and name of the weight, its roles or None, its shape)}."""
    return {
        weight.path: (
            (type(layer), weight.name),
            find_axes(layer, weight.name, weight.shape),
            weight.shape,
        )
        for layer in keras_internals.all_layers(model)
        for weight in keras_internals.own_variables(layer)
    }


def _upstream(shape):
    return np.random.default_rng(1).normal(size=shape).astype("float32")


def close(ours, theirs, atol):
    for a, b in zip(_flat(ours), _flat(theirs), strict=True):
        a, b = map(keras.ops.convert_to_numpy, (a, b))
        np.testing.assert_allclose(a, b, atol=atol, rtol=1e-5)


def _flat(x):
    return keras.tree.flatten(x)


def _randomize(layer, scale=0.5):
    """Draws weights that hide nothing: zeros and ones would."""
    random = np.random.default_rng(3)
    for weight in layer.weights:
        if "float" in weight.dtype and "variance" not in weight.path:
            weight.assign(random.normal(size=weight.shape, scale=scale))


class _policy:
    def __init__(self, name):
        self.name = name

    def __enter__(self):
        self.before = keras.config.dtype_policy()
        keras.config.set_dtype_policy(self.name)

    def __exit__(self, *exception):
        keras.config.set_dtype_policy(self.before)
