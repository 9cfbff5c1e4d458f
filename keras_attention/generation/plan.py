"""What a model keeps while it decodes, asked of its layers without running them on values."""

import contextlib
import dataclasses
import itertools
import warnings

import keras

from keras_attention import scope
from keras_attention.masks import drawing

SOURCE = 3  # places of a source when layers are asked
LONGEST_PREFIX = 4096  # tokens that see one another


@dataclasses.dataclass(frozen=True)
class Plan:
    """What the layers of a model keep, and what they ask of a cache.

    Attributes:
        entries: dict, (prefix, name) -> `scope.Entry`.
        masks: dict, layer name -> mask part, of attention to the tokens themselves.
        longest: dict, what has room for so many tokens only -> int.
    """

    entries: dict
    masks: dict
    longest: dict

    def least_prompt(self, max_length):
        """How many tokens the first call must have at least, because some look ahead among them.

        A layer that looks ahead everywhere cannot decode: a ValueError names it.
        """
        return max((_ahead(n, m, max_length) for n, m in self.masks.items()), default=1)

    def check_length(self, max_length):
        """Refuses a cache that is longer than the positions a model has."""
        for what, longest in self.longest.items():
            if longest < max_length:
                raise ValueError(
                    f"{max_length} places (max_length, or a prompt and its new tokens but for the "
                    f"last) are more than {what} has room for. Choose at most {longest}, or build "
                    "the model with more."
                )


def of(model, tokens, encoder=None, join=None):
    """The `Plan` of a functional model.

    Args:
        tokens: str, the name of the input that holds token ids.
        encoder: a functional model that makes the other inputs of a source, or None.
        join: function of what the encoder returns and of the tokens, to the inputs of `model`.
    """
    _refuse_foreign(model)
    _check_inputs(model, tokens)
    if encoder is None:
        length = _length_unlike(model.input)
        asked = scope.Planning(length)
        inputs = keras.tree.map_structure(
            lambda x: _symbol(x, length if x.name == tokens else SOURCE), model.input
        )
        _Trace(model, asked)(inputs)
    else:
        source = keras.tree.map_structure(lambda x: _symbol(x, SOURCE), encoder.input)
        encoded = encoder.compute_output_spec(source)
        length = _length_unlike([model.input, encoded])
        asked = scope.Planning(length)
        token_ids = next(x for x in model.inputs if x.name == tokens)
        _Trace(model, asked, encoder, join)(source, _symbol(token_ids, length))
    if asked.refused:
        raise ValueError(f"{model.name} cannot decode token by token: {asked.refused[0]}")
    if not asked.entries:
        raise ValueError(
            f"{model.name} keeps nothing of earlier tokens, so that every token would be chosen "
            "by the one before alone: it has no attention, recurrent or convolution layer of "
            "keras_attention."
        )
    return Plan(dict(asked.entries), dict(asked.masks), dict(asked.longest))


def _length_unlike(tensors):
    """A number of tokens that is told from every other size, by which layers know the tokens."""
    sizes = {axis for x in keras.tree.flatten(tensors) for axis in x.shape[1:]} | {SOURCE}
    return next(number for number in itertools.count(2) if number not in sizes)


def _symbol(tensor, length):
    sizes = [length] + [SOURCE] * len(tensor.shape)
    axes = zip(tensor.shape[1:], sizes, strict=False)
    shape = [size if axis is None else axis for axis, size in axes]
    return keras.Input(batch_shape=(None, *shape), dtype=tensor.dtype, name=tensor.name)


class _Trace(keras.layers.Layer):
    """Runs a model under a plan, without values."""

    def __init__(self, model, asked, encoder=None, join=None):
        super().__init__(autocast=False)
        self.model, self.asked = model, asked
        self.encoder, self.join = encoder, join

    def call(self, inputs, tokens=None):
        if self.encoder is not None:  # whose masks come with what it returns
            inputs = self.join(self.encoder(inputs), tokens)
        with self.asked, quiet():
            return self.model(inputs)


@contextlib.contextmanager
def quiet():
    """Keras warns that a functional model ends masks, which its layers have seen by then."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="(?s).*does not support masking")
        yield


def _refuse_foreign(model):
    """Keras's own layers that mix tokens know no cache: they would be wrong without a word."""
    kinds = (
        keras.layers.MultiHeadAttention,
        keras.layers.GroupQueryAttention,
        keras.layers.Attention,
        keras.layers.RNN,
        keras.layers.Bidirectional,
        keras.layers.Conv1D,
        keras.layers.DepthwiseConv1D,
        keras.layers.SeparableConv1D,
        keras.layers.GlobalAveragePooling1D,
        keras.layers.GlobalMaxPooling1D,
    )
    for layer in model._flatten_layers(include_self=False):
        if isinstance(layer, kinds) and _own(layer, model):
            raise ValueError(
                f"{layer.name} is Keras's {type(layer).__name__}, which mixes tokens and cannot "
                "take them one by one. Use the layer of keras_attention in its place."
            )


def _check_inputs(model, tokens):
    """Refuses what takes no tokens one by one, or gives no logits for each."""
    given = next(x for x in model.inputs if x.name == tokens)
    if len(given.shape) < 2 or given.shape[1] is not None:
        raise ValueError(
            f"{model.name} takes {tokens} of shape {tuple(given.shape)}, and decoding gives it one "
            "token at a time: build it with keras.Input((None,), dtype='int32')."
        )


def _own(layer, model):
    """Whether a layer is part of the model's graph, and not of a layer of this package."""
    return any(layer is child for child in _functional_layers(model))


def _functional_layers(model):
    for layer in model.layers:
        yield layer
        if isinstance(layer, keras.Model):
            yield from _functional_layers(layer)


def _ahead(name, mask, max_length):
    """How many first tokens must come together: one more than the last that is seen ahead."""
    right = None if mask is None or mask.global_tokens() else mask.band()[1]
    if right is not None and right <= 0:
        return 1
    if mask is not None:
        length = min(max_length, LONGEST_PREFIX) + 1
        queries, keys = drawing.grid(mask, length).nonzero()
        least = max(keys[keys > queries], default=0) + 1
        if least < length:
            return int(least)
    raise ValueError(
        f"{name} looks ahead (mask={mask}), so that earlier tokens change with every new one: it "
        "cannot decode token by token. Give it a mask that looks back, such as "
        "ka.masks.Causal(); of an encoder-decoder it is the decoder that decodes."
    )
