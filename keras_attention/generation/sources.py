"""What an encoder reads, as users have it, made into tensors."""

import keras
import numpy as np
from keras import ops

from keras_attention.generation import prompts
from keras_attention.generation.compiled import Spec, dtype_of


def source_of(decoder, source):
    """What the encoder reads as arrays, and the like in `Spec`s.

    Args:
        decoder: a `Decoder` with an encoder.
        source: ids (B, S) or lists of ids of any lengths; another array; or a dict of arrays.
    """
    if source is None:
        raise ValueError("The model has an encoder: give what it reads, as prompt or as source.")
    known = {x.name: Spec(tuple(x.shape), dtype_of(x)) for x in _inputs(decoder)}
    if isinstance(source, dict):
        arrays = {name: _array(x, known.get(name)) for name, x in source.items()}
        return arrays, {name: _spec(x, known.get(name)) for name, x in arrays.items()}
    known = next(iter(known.values())) if len(known) == 1 else None
    array = _ids(decoder, source) if prompts.is_ids(source) else _array(source, known)
    return array, _spec(array, known)


def rows_of(source):
    """How many rows a source has."""
    return len(keras.tree.flatten(source)[0])


def _inputs(decoder):
    return getattr(decoder.encoder, "inputs", ())


def _array(x, spec):
    x = np.asarray(ops.convert_to_numpy(x))
    if spec is None:
        return x
    if "int" in spec.dtype and x.dtype.kind == "f":
        raise ValueError(f"The encoder reads ids, whole numbers, and was given {x.dtype}.")
    return x.astype(spec.dtype)


def _spec(x, known):
    """What the encoder says of its input, of any batch; without it, ids may be of any length."""
    dtype = dtype_of(x)
    if known is not None:
        return Spec((None, *known.shape[1:]), dtype)
    return Spec((None, *(x.shape[1:] if "float" in dtype else [None] * (x.ndim - 1))), dtype)


def _ids(decoder, source):
    rows = prompts.rows("source", source)
    if not rows:
        raise ValueError("The source has no rows: expected ids (B, S), or a list of lists.")
    prompts.check_rows("source", rows, _vocabulary_size(decoder))
    return prompts.pad_right(rows, prompts.bucket(max(map(len, rows))), 0)


def _vocabulary_size(decoder):
    """How many ids the encoder knows, or None."""
    layers = getattr(decoder.encoder, "_flatten_layers", list)()
    return max((x.input_dim for x in layers if isinstance(x, keras.layers.Embedding)), default=None)
