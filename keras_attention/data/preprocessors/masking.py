"""`MaskedWindows`: windows of running text in which some tokens are hidden.

KerasHub's `MaskedLMMaskGenerator` is not used: it takes no seed, so that no run can be repeated and
no score compared, it puts padding and the other special tokens among the random ones, and it gives
positions, where our losses take labels of every place.
"""

import dataclasses

import numpy as np

from keras_attention.core.checks import check_whole_number
from keras_attention.data.columns import Columns, pad_rows
from keras_attention.data.readers.corpus import check_tokens
from keras_attention.data.shares import check_batches
from keras_attention.data.tokenizers.entries import Characters
from keras_attention.data.tokenizers.pretrained import PretrainedTokenizer
from keras_attention.data.tokenizers.subwords import Subwords

OWNER = "MaskedWindows"


@dataclasses.dataclass(eq=False)
class MaskedWindows:
    """Windows of running text in which some tokens are hidden, to train a masked language model.

    In every window a share of the tokens is selected (Devlin et al., 2019, section 3.1). Most of
    these become `[MASK]`, some another token, drawn from all that are not special, and some stay as
    they are; the label of a selected token is the token that was there. What is selected is drawn
    anew for every batch (Liu et al., 2019, section 4.1: *dynamic masking*).

    Args:
        tokens: ints (L,), a text such as `tokenizer.encode([text])[0]`.
        window_length: int T, the tokens that a model sees at once.
        tokenizer: `Characters` or `Subwords` with a `[MASK]`, built with `mask_token=True`; or a
            `PretrainedTokenizer` with one, whose special tokens stand around every window. Then
            `tokens` are those of `tokenizer.encode_plain(text)`.
        steps: int, how many batches of windows at random places make an epoch: for training. None
            for windows one after another, in which every pass hides the same tokens: for scoring.
            What the last window lacks is padding then.
        mask_selection_rate: float, the share of tokens that are selected, rounded, but at least one
            of each window.
        mask_token_rate, random_token_rate: float, the shares of these that become `[MASK]` and
            another token.

    Batches are int32 ids and labels (B, T), labels -1 where no token was selected.

    ```python
    import numpy as np
    import keras_attention as ka

    text = "the cat sat on the mat, the rat ate the cat. " * 10
    characters = ka.data.Characters.build([text], mask_token=True)
    windows = ka.data.MaskedWindows(characters.encode([text])[0], 40, characters, steps=3)
    batches = ka.data.batches(windows, batch_size=4)
    ids, labels = next(iter(batches))
    assert ids.shape == labels.shape == (4, 40) and len(batches) == 3
    selected = labels.numpy() >= 0
    assert (selected.sum(axis=1) == 6).all()  # 15 % of 40
    assert (ids.numpy()[~selected] != characters.mask_token_id).all()
    ```
    """

    tokens: np.ndarray
    window_length: int
    tokenizer: Characters | Subwords | PretrainedTokenizer
    steps: int | None = None
    mask_selection_rate: float = 0.15
    mask_token_rate: float = 0.8
    random_token_rate: float = 0.1

    def __post_init__(self):
        self.tokens = check_tokens(OWNER, self.tokens)
        check_whole_number(OWNER, "window_length", self.window_length)
        names = ("mask_selection_rate", "mask_token_rate", "random_token_rate")
        _check_rates(**{name: getattr(self, name) for name in names})
        self.mask_token_id = _find_mask_token(self.tokenizer)
        special = self.tokenizer.special_ids
        self.special, self.around = special, self.tokenizer.around
        self.padding_id = self.tokenizer.padding_id or 0
        self.text_length = self.window_length - sum(map(len, self.around))
        if self.text_length < 1:
            raise ValueError(
                f"{OWNER}(window_length={self.window_length}): special tokens leave no room for a "
                "text."
            )
        if self.steps is None:
            return
        check_whole_number(OWNER, "steps", self.steps)
        if len(self.tokens) < self.text_length:
            raise ValueError(
                f"The text has {len(self.tokens)} tokens: too few for a window of "
                f"{self.window_length}. Choose a smaller window_length."
            )

    def __len__(self):
        """Return how many windows there are in order, or batches of those at random places."""
        return self.steps or -(-len(self.tokens) // self.text_length)

    def columns(self):
        """Return `Columns`, whose masks are drawn."""
        return Columns(draw=self._draw)

    def _draw(self, tf, batch_size, seed, drop_remainder):
        is_ordinary = np.zeros(max(len(self.tokenizer), *(i + 1 for i in self.special)), bool)
        is_ordinary[: len(self.tokenizer)] = True
        is_ordinary[[*self.special, self.mask_token_id]] = False
        ordinary_ids = tf.constant(np.flatnonzero(is_ordinary), "int32")

        def hide(ids, seeds):
            eligible = tf.gather(is_ordinary, ids)
            selected = select_tokens(tf, eligible, self.mask_selection_rate, seeds[:2])
            draw = tf.random.stateless_uniform(tf.shape(ids), seeds[2:])
            random_ids = tf.random.stateless_uniform(
                tf.shape(ids), seeds[1:3], 0, len(ordinary_ids), "int32"
            )
            random_ids = tf.gather(ordinary_ids, random_ids)
            replaced = draw < self.mask_token_rate + self.random_token_rate
            hidden = tf.where(replaced, random_ids, ids)
            hidden = tf.where(draw < self.mask_token_rate, self.mask_token_id, hidden)
            return tf.where(selected, hidden, ids), tf.where(selected, ids, -1)

        if self.steps is None:
            before, after = self.around
            starts = range(0, len(self.tokens), self.text_length)
            texts = (self.tokens[k : k + self.text_length] for k in starts)
            rows = [[*before, *text, *after] for text in texts]
            windows = pad_rows(rows, self.padding_id, self.window_length)
            windows = tf.data.Dataset.from_tensor_slices(windows)
            windows = windows.batch(batch_size, drop_remainder=drop_remainder)
            check_batches(len(windows))
            # Four numbers seed a batch: its masks stay as they are.
            seeds = tf.data.Dataset.random(seed, rerandomize_each_iteration=False).batch(4)
            return tf.data.Dataset.zip(windows, seeds).map(hide).prefetch(2)
        num_starts = len(self.tokens) - self.text_length + 1
        text, offsets = tf.constant(self.tokens), tf.range(self.text_length)
        before, after = (
            tf.tile([tf.constant(ids, "int32")], (batch_size, 1)) for ids in self.around
        )

        def cut(seeds):
            begins = tf.random.stateless_uniform((batch_size, 1), seeds[:2], 0, num_starts, "int32")
            windows = tf.gather(text, begins + offsets)
            return hide(tf.concat([before, windows, after], axis=1), seeds[2:])

        # Six numbers seed a batch; every pass over the data set draws new ones.
        seeds = tf.data.Dataset.random(seed, rerandomize_each_iteration=True).batch(6)
        return seeds.take(self.steps).map(cut).prefetch(2)


def select_tokens(tf, eligible, rate, seed):
    """bool (B, T): in each row the share `rate` of the eligible tokens, at least one.

    Args:
        eligible: bool (B, T).
        rate: float.
        seed: ints (2,).
    """
    draw = tf.where(eligible, tf.random.stateless_uniform(tf.shape(eligible), seed), 2.0)
    rank = tf.argsort(tf.argsort(draw, axis=-1), axis=-1)
    num_eligible = tf.reduce_sum(tf.cast(eligible, "float32"), axis=-1, keepdims=True)
    count = tf.maximum(tf.cast(tf.round(rate * num_eligible), "int32"), 1)
    return (rank < count) & eligible


def _find_mask_token(tokenizer):
    """Return the id of `[MASK]`, or an error that says how to get one."""
    if (mask_token_id := tokenizer.mask_token_id) is None:
        raise ValueError(
            f"{OWNER}: {tokenizer!r} has no [MASK]: build it with mask_token=True, as "
            "ka.data.Subwords.build(texts, vocabulary_size, mask_token=True)."
        )
    return mask_token_id


def _check_rates(**rates):
    for name, rate in rates.items():
        if not 0 <= rate <= 1 or (name == "mask_selection_rate" and not rate):
            raise ValueError(f"{OWNER}({name}={rate!r}): expected a share, from 0 to 1.")
    if rates["mask_token_rate"] + rates["random_token_rate"] > 1 + 1e-9:
        raise ValueError(
            f"{OWNER}: mask_token_rate={rates['mask_token_rate']} and "
            f"random_token_rate={rates['random_token_rate']} are shares of the selected tokens: "
            "together they are at most 1."
        )
