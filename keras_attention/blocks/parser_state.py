"""Layers of a tree as it is written: `ParserState` follows it, `AllowedLogits` constrains it."""

import functools

import keras
from keras import ops

from keras_attention.core import scope
from keras_attention.core.checks import check_whole_number
from keras_attention.core.integer_inputs import IntegerInputs
from keras_attention.core.part import OwnArguments
from keras_attention.core.tree_ids import CLOSE, EACH, END, FIRST_LABEL

NOWHERE, LOWEST = -100.0, -50.0  # logits: of what may not come, and the least of what may
DEEPEST = 31  # deeper constituents count as this deep


@keras.saving.register_keras_serializable(package="keras_attention")
class ParserState(OwnArguments, IntegerInputs, keras.layers.Layer):
    """Follows the labels of a linearised tree: which word is next, how deep, and what may follow.

    (Vinyals et al., 2015, *Grammar as a Foreign Language*, section 2.2, for trees as labels; Dyer
    et al., 2016, section 3.2, for what may follow.) A label opens a constituent, closes the one
    that was opened last, or is the tag of the next word. So that every text of labels that ends is
    a tree over exactly these words,

    - a constituent opens only while there are words left, and no more than `spare_constituents`
      and two for each word before it, so that every tree ends;
    - a tag stands inside of a constituent, while there are words left;
    - a constituent closes when it has a child, and the outermost one behind the last word;
    - the END id follows the closed outermost constituent, and nothing else does.

    Args:
        num_constituents: int L, labels of constituents: the ids 4 to L + 3.
        num_tags: int, tags: the ids behind them. 0 is padding, 1 begins, 2 ends, 3 closes.
        spare_constituents: int, how many may open in front of the first word.

    Call arguments:
        target_ids: int (B, T), from the begin id on.
        encoded: (B, S, D), a vector of each word.
        encoded_mask: bool (B, S), True = a word; filled by Keras from the implicit mask.

    Returns, behind each of the ids,
        the vector of the next word (B, T, D), zeros behind the last one; how many constituents are
        open, int32 (B, T), 31 at most; and which ids may follow, (B, T, L + tags + 4), 1 or 0.

    While a model decodes token by token, words and counts are kept in its cache.

    ```python
    import numpy as np
    import keras_attention as ka

    state = ka.blocks.ParserState(num_constituents=1, num_tags=2)  # 4 opens, 5 and 6 are tags
    words = np.array([[[1.0], [2.0]]])
    word, depth, allowed = state(np.array([[1, 4, 6, 5, 3, 2]]), words)
    assert np.array(word)[0, :, 0].tolist() == [1, 1, 2, 0, 0, 0]
    assert np.array(depth).tolist() == [[0, 1, 1, 1, 0, 0]]
    assert np.array(allowed)[0, 1].tolist() == [0, 0, 0, 0, 1, 1, 1]  # to open, or a tag
    assert np.array(allowed)[0, 4].tolist() == [0, 0, 1, 0, 0, 0, 0]  # the end alone
    ```
    """

    own_arguments = ("num_constituents", "num_tags", "spare_constituents")

    def __init__(self, num_constituents, num_tags, spare_constituents=8, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.input_spec = keras.layers.InputSpec(ndim=2)
        self.num_constituents, self.num_tags = num_constituents, num_tags
        self.spare_constituents = spare_constituents
        for name in ("num_constituents", "num_tags", "spare_constituents"):
            check_whole_number("ParserState", name, getattr(self, name))

    def call(self, target_ids, encoded, encoded_mask=None):
        ids = ops.cast(target_ids, "int32")
        slot = self._find_slot(encoded)
        words, number = self._read_words(slot, encoded, encoded_mask)
        is_tag = ops.greater_equal(ids, FIRST_LABEL + self.num_constituents)
        is_label = ops.greater_equal(ids, FIRST_LABEL)
        opens = ops.cast(ops.logical_and(is_label, ops.logical_not(is_tag)), "float32")
        closes, tags = ops.cast(ops.equal(ids, CLOSE), "float32"), ops.cast(is_tag, "float32")
        closed = self._count(slot, "closed", closes)  # each (B, T)
        opened = self._count(slot, "opened", opens)
        read = self._count(slot, "read", tags)
        places = ops.cast(ops.arange(ops.shape(words)[1], dtype="int32"), "float32")
        is_next = ops.equal(ops.expand_dims(read, axis=2), ops.reshape(places, (1, 1, -1)))
        word = ops.matmul(ops.cast(is_next, words.dtype), words)  # zeros behind the last word
        depth = ops.subtract(opened, closed)
        allowed = self._allow(ids, opens, depth, opened, read, number)
        allowed = ops.cast(allowed, self.compute_dtype)
        return word, ops.cast(ops.clip(depth, 0, DEEPEST), "int32"), allowed

    def _find_slot(self, encoded):
        """The slot of words and counts while a model decodes; it declares them, or is None."""
        decoding = scope.current(scope.Decoding)
        slot = None if decoding is None else decoding.slot(self)
        if slot is None or not decoding.tracing:
            return slot
        counts = {name: scope.State((), "float32") for name in ("closed", "opened", "read")}
        words = scope.Source((encoded.shape[-1],), self.compute_dtype)
        slot.declare(words=words, is_word=scope.Source((), "float32"), **counts)
        return None

    def _read_words(self, slot, encoded, mask):
        """The words (B, S, D), and how many there are, float32 (B, 1)."""
        if slot is not None and not slot.scope.encoding:
            words, is_word = slot["words"], slot["is_word"]
        else:
            words = encoded
            is_word = ops.ones(ops.shape(encoded)[:2], dtype="float32")
            if mask is not None:
                is_word = ops.multiply(is_word, ops.cast(mask, "float32"))
            words = ops.multiply(words, ops.cast(ops.expand_dims(is_word, axis=2), words.dtype))
            if slot is not None:
                slot.update(words=words, is_word=is_word)
        return words, ops.sum(is_word, axis=1, keepdims=True)

    def _count(self, slot, name, new):
        """How many there were up to each of the new ids, (B, T)."""
        total = ops.cumsum(new, axis=1)
        if slot is None or slot.scope.encoding:
            return total
        # Keras takes the sum of (B, T) and (B, 1) for one with a bias (T,) where T is B.
        total = ops.subtract(total, ops.negative(ops.expand_dims(slot[name], axis=1)))
        slot.update(**{name: total[:, -1]})
        return total

    def _allow(self, ids, opens, depth, opened, read, number):
        """Which ids may follow, 1 or 0, (B, T, V)."""

        def both(*conditions):
            conditions = [ops.cast(x, "float32") for x in conditions]
            return functools.reduce(ops.multiply, conditions)

        words_left = ops.less(read, number)
        inside = ops.greater(depth, 0.5)
        begun = ops.cast(ops.greater(opened, 0.5), "float32")
        room = ops.less(opened, self.spare_constituents + EACH * read)
        whole = ops.maximum(  # the constituent is not the outermost, or holds all words
            ops.cast(ops.greater(depth, 1.5), "float32"),
            ops.cast(ops.greater_equal(read, number), "float32"),
        )
        can_begin = ops.subtract(1.0, begun) + ops.cast(inside, "float32")
        moves = {
            "end": both(ops.less(depth, 0.5), begun, ops.not_equal(ids, END)),
            "close": both(inside, ops.subtract(1.0, opens), whole),
            "open": both(words_left, room, can_begin),
            "tag": both(words_left, inside),
        }
        labels = ["open"] * self.num_constituents + ["tag"] * self.num_tags
        kinds = ["padding", "start", "end", "close", *labels]  # of every id
        parts = [
            ops.expand_dims(move, axis=2)
            * ops.reshape([float(k == name) for k in kinds], (1, 1, -1))
            for name, move in moves.items()
        ]
        return functools.reduce(ops.add, parts)

    @property
    def vocabulary_size(self):
        """int V, how many ids there are."""
        return FIRST_LABEL + self.num_constituents + self.num_tags

    def compute_mask(self, *args, **kwargs):
        return None

    def compute_output_spec(self, target_ids, encoded, encoded_mask=None):
        shape = tuple(target_ids.shape)
        return (
            keras.KerasTensor((*shape, encoded.shape[-1]), self.compute_dtype),
            keras.KerasTensor(shape, "int32"),
            keras.KerasTensor((*shape, self.vocabulary_size), self.compute_dtype),
        )

    def compute_output_shape(self, target_ids_shape, encoded_shape):
        shape = tuple(target_ids_shape)
        return (*shape, encoded_shape[-1]), shape, (*shape, self.vocabulary_size)


@keras.saving.register_keras_serializable(package="keras_attention")
class AllowedLogits(keras.layers.Layer):
    """Logits of what may follow, at least -50; what may not has -100, whatever else it had.

    So the likeliest id is always one that may follow, in any runtime and with 8 bits, too.

    Call arguments:
        inputs: (..., V), logits.
        allowed: (..., V), 1 where an id may follow, and 0 where not.

    ```python
    import numpy as np
    import keras_attention as ka

    logits = ka.blocks.AllowedLogits()(np.array([[3.0, -70.0]]), np.array([[0.0, 1.0]]))
    assert np.array(logits).tolist() == [[-100, -50]]
    ```
    """

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True

    def call(self, inputs, allowed):
        allowed = ops.cast(allowed, inputs.dtype)
        nowhere = ops.multiply(ops.subtract(1.0, allowed), NOWHERE)
        return ops.add(ops.multiply(ops.maximum(inputs, LOWEST), allowed), nowhere)

    def compute_mask(self, inputs, previous=None):
        return None

    def compute_output_shape(self, inputs_shape, allowed_shape=None):
        return inputs_shape
