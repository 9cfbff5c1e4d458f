"""`ParserState` tracks a parse tree during generation, `AllowedLogits` forbids invalid trees."""

import functools

import keras
from keras import ops

from keras_attention.core import checks, scope
from keras_attention.core.integer_inputs import IntegerInputs
from keras_attention.core.part import OwnArguments
from keras_attention.core.special_ids import CLOSE, EACH, END, FIRST_LABEL

FORBIDDEN, LOWEST = -100.0, -50.0  # logits of forbidden ids, and the lowest of allowed ids
DEEPEST = 31  # the maximum depth that `ParserState` returns


@keras.saving.register_keras_serializable(package="keras_attention")
class ParserState(OwnArguments, IntegerInputs, keras.layers.Layer):
    """Tracks a parse tree while a model generates the tree as a sequence of labels.

    After each label, the layer returns the next word, the depth of the tree, and the labels that
    may follow (Vinyals et al., 2015, *Grammar as a Foreign Language*, section 2.2, and Dyer et al.,
    2016, section 3.2). A label opens a constituent, closes the last open constituent, or is the tag
    of the next word. Four rules ensure that a finished sequence of labels is a tree over exactly
    these words:

    - A constituent can open only while there are words left. At most `spare_constituents` may open
      before the first word, and two more for each word that was read, so every tree ends.
    - A tag must be inside a constituent. There is one tag for each word.
    - A constituent can close only after its first child, and the outermost constituent only after
      the last word.
    - After the outermost constituent has closed, only the end id may follow.

    Args:
        num_constituents: int L, number of constituent labels. Their ids are 4 to L + 3.
        num_tags: int, number of tags, whose ids come after. Id 0 is padding, 1 the start, 2 the
            end, and 3 closes a constituent.
        spare_constituents: int, the number of constituents that may open before the first word.

    Call arguments:
        target_ids: int (B, T), the labels so far, which begin with the start id.
        encoded: (B, S, D), one vector for each word.
        encoded_mask: bool (B, S), True = a word. Keras fills it from the implicit mask.

    Returns three tensors with the state after each id:

    - the vector of the next word (B, T, D), zeros after the last word.
    - the number of open constituents, int32 (B, T), at most 31.
    - which ids may follow (B, T, L + num_tags + 4), 1 for allowed ids, else 0.

    When generating with a cache, the cache stores the words and the counts.

    ```python
    import numpy as np
    import keras_attention as ka

    state = ka.blocks.ParserState(num_constituents=1, num_tags=2)  # 4 opens, 5 and 6 are tags
    words = np.array([[[1.0], [2.0]]])
    word, depth, allowed = state(np.array([[1, 4, 6, 5, 3, 2]]), words)
    assert np.array(word)[0, :, 0].tolist() == [1, 1, 2, 0, 0, 0]
    assert np.array(depth).tolist() == [[0, 1, 1, 1, 0, 0]]
    assert np.array(allowed)[0, 1].tolist() == [0, 0, 0, 0, 1, 1, 1]  # opening, or a tag
    assert np.array(allowed)[0, 4].tolist() == [0, 0, 1, 0, 0, 0, 0]  # only the end
    ```
    """

    own_arguments = ("num_constituents", "num_tags", "spare_constituents")

    def __init__(self, num_constituents, num_tags, spare_constituents=8, **kwargs):
        super().__init__(**kwargs)
        self.input_spec = keras.layers.InputSpec(ndim=2)
        self.num_constituents, self.num_tags = num_constituents, num_tags
        self.spare_constituents = spare_constituents
        checks.check_whole_numbers(self, *self.own_arguments)

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
        index = ops.cast(ops.arange(ops.shape(words)[1], dtype="int32"), "float32")
        is_next = ops.equal(ops.expand_dims(read, axis=2), ops.reshape(index, (1, 1, -1)))
        word = ops.matmul(ops.cast(is_next, words.dtype), words)  # zeros after the last word
        depth = ops.subtract(opened, closed)
        allowed = self._allow(ids, opens, depth, opened, read, number)
        allowed = ops.cast(allowed, self.compute_dtype)
        return word, ops.cast(ops.clip(depth, 0, DEEPEST), "int32"), allowed

    def _find_slot(self, encoded):
        """Return the layer's entries in the decoding cache, or None without a cache.

        The entries are a `CacheSlot`, which reads and writes them by name. While the model is
        traced to find which entries its layers need, declare them and return None.

        `encoded` is (B, S, D), one vector for each word.
        """
        decoding = scope.current(scope.Decoding)
        slot = None if decoding is None else decoding.slot(self)
        if slot is None or not decoding.tracing:
            return slot
        counts = {name: scope.State((), "float32") for name in ("closed", "opened", "read")}
        words = scope.Source((encoded.shape[-1],), self.compute_dtype)
        slot.declare(words=words, is_word=scope.Source((), "float32"), **counts)
        return None

    def _read_words(self, slot, encoded, mask):
        """Return the vectors of the words (B, S, D), and the number of words, float32 (B, 1).

        Args:
            slot: the layer's `CacheSlot`, from which words are read after the first call, or None.
            encoded: (B, S, D), the words of the first call.
            mask: bool (B, S), True = a word, or None.
        """
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
        """Return the running total of `new` (B, T) along each row, such as of closed constituents.

        `slot` is the layer's `CacheSlot`, or None without a cache. With a cache, the total
        continues from the entry `name`, which is updated.
        """
        total = ops.cumsum(new, axis=1)
        if slot is None or slot.scope.encoding:
            return total
        # Keras treats a sum of (B, T) and (B, 1) as one with a bias (T,) if T equals B.
        total = ops.subtract(total, ops.negative(ops.expand_dims(slot[name], axis=1)))
        slot.update(**{name: total[:, -1]})
        return total

    def _allow(self, ids, opens, depth, opened, read, number):
        """Return which ids may follow (B, T, V), 1 for allowed ids, else 0.

        Args:
            ids: int32 (B, T), the labels so far.
            opens: (B, T), 1 where a label opens a constituent, else 0.
            depth, opened, read: (B, T), counts up to each label: constituents that are still open,
                constituents that were opened, and tags.
            number: (B, 1), the number of words.
        """

        def both(*conditions):
            conditions = [ops.cast(x, "float32") for x in conditions]
            return functools.reduce(ops.multiply, conditions)

        words_left = ops.less(read, number)
        inside = ops.greater(depth, 0.5)
        begun = ops.cast(ops.greater(opened, 0.5), "float32")
        room = ops.less(opened, self.spare_constituents + EACH * read)
        can_close = ops.maximum(  # the constituent is not the outermost, or contains all words
            ops.cast(ops.greater(depth, 1.5), "float32"),
            ops.cast(ops.greater_equal(read, number), "float32"),
        )
        can_begin = ops.subtract(1.0, begun) + ops.cast(inside, "float32")
        moves = {
            "end": both(ops.less(depth, 0.5), begun, ops.not_equal(ids, END)),
            "close": both(inside, ops.subtract(1.0, opens), can_close),
            "open": both(words_left, room, can_begin),
            "tag": both(words_left, inside),
        }
        labels = ["open"] * self.num_constituents + ["tag"] * self.num_tags
        kinds = ["padding", "start", "end", "close", *labels]  # what each id means
        parts = [
            ops.expand_dims(move, axis=2)
            * ops.reshape([float(k == name) for k in kinds], (1, 1, -1))
            for name, move in moves.items()
        ]
        return functools.reduce(ops.add, parts)

    @property
    def vocabulary_size(self):
        """Return int V, the number of target ids."""
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
    """Sets the logits of forbidden ids to -100, and raises other logits to at least -50.

    So the most probable id is always allowed, even in files quantized to int8. `ParserState`
    returns which ids are allowed.

    Call arguments:
        inputs: logits (..., V) of V ids.
        allowed: (..., V), 1 for an allowed id, else 0.

    Returns logits (..., V), without a mask.

    ```python
    import numpy as np
    import keras_attention as ka

    logits = ka.blocks.AllowedLogits()(np.array([[3.0, -70.0]]), np.array([[0.0, 1.0]]))
    assert np.array(logits).tolist() == [[-100, -50]]
    ```
    """

    def call(self, inputs, allowed):
        allowed = ops.cast(allowed, inputs.dtype)
        forbidden = ops.multiply(ops.subtract(1.0, allowed), FORBIDDEN)
        return ops.add(ops.multiply(ops.maximum(inputs, LOWEST), allowed), forbidden)

    def compute_mask(self, inputs, previous=None):
        return None

    def compute_output_shape(self, inputs_shape, allowed_shape=None):
        return inputs_shape
