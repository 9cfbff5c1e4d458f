"""`MaskedWindows`: windows of running text with masked tokens.

KerasHub's `MaskedLMMaskGenerator` is not used here. It has no seed, may replace tokens by special
tokens, and returns only the masked positions, whereas the losses in this package expect a label for
every position.
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
    """Windows of running text with masked tokens, for training a masked language model.

    A share of the tokens in each window is selected (Devlin et al., 2019, section 3.1). Most of the
    selected tokens become `[MASK]`, some become a random ordinary token, and the rest stay
    unchanged. Labels are the original ids of the selected tokens, and -1 elsewhere. In training,
    the selection differs in every batch (Liu et al., 2019, section 4.1: *dynamic masking*). Batches
    are int32 ids and labels, (B, T) each.

    Args:
        tokens: ints (n,), the ids of the whole text, such as `tokenizer.encode([text])[0]`. For a
            `PretrainedTokenizer`, use `tokenizer.encode_plain(text)`.
        window_length: int T, the number of tokens in a window, including special tokens.
        tokenizer: `Characters` or `Subwords` built with `mask_token=True`, or a
            `PretrainedTokenizer` with a mask token, whose special tokens are then added around
            every window.
        steps: int, the number of batches in an epoch, with windows at random positions, for
            training. None means consecutive windows with the same masks in every pass, for
            evaluation. The last window is then padded.
        mask_selection_rate: float, the share of tokens to select. At least one token is selected in
            each window.
        mask_token_rate, random_token_rate: float, the shares of the selected tokens that become
            `[MASK]`, or a random token.

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
        self._check_rates()
        self.mask_token_id = self.tokenizer.mask_token_id
        if self.mask_token_id is None:
            raise ValueError(
                f"{OWNER}: {self.tokenizer!r} has no [MASK]: build it with mask_token=True."
            )
        self.special, self.around = self.tokenizer.special_ids, self.tokenizer.around
        self.padding_id = self.tokenizer.padding_id or 0
        self.text_length = self.window_length - sum(map(len, self.around))
        if self.text_length < 1:
            raise ValueError(
                f"{OWNER}(window_length={self.window_length}): too short for special tokens and "
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

    def _check_rates(self):
        for name in ("mask_selection_rate", "mask_token_rate", "random_token_rate"):
            rate = getattr(self, name)
            if not 0 <= rate <= 1 or (name == "mask_selection_rate" and not rate):
                raise ValueError(f"{OWNER}({name}={rate!r}): expected a share, from 0 to 1.")
        if self.mask_token_rate + self.random_token_rate > 1 + 1e-9:
            raise ValueError(
                f"{OWNER}: mask_token_rate={self.mask_token_rate} and random_token_rate="
                f"{self.random_token_rate} are shares of the selected tokens: their sum is at "
                "most 1."
            )

    def __len__(self):
        """Return the number of batches in an epoch.

        If `steps` is None, it is the number of windows.
        """
        return self.steps or -(-len(self.tokens) // self.text_length)

    def columns(self):
        """Return `Columns` for `ka.data.batches`, which compute new masks for every batch."""
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
            # Four numbers seed a batch, the same ones in every pass.
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

        # Six numbers seed a batch. Every pass over the dataset draws new ones.
        seeds = tf.data.Dataset.random(seed, rerandomize_each_iteration=True).batch(6)
        return seeds.take(self.steps).map(cut).prefetch(2)


def select_tokens(tf, eligible, rate, seed):
    """Select a random share `rate` of the tokens that may be masked, at least one in each row.

    `eligible` (which tokens may be masked) and the result are bool (B, T). `seed` is int32 (2,),
    and `tf` the module tensorflow.
    """
    draw = tf.where(eligible, tf.random.stateless_uniform(tf.shape(eligible), seed), 2.0)
    rank = tf.argsort(tf.argsort(draw, axis=-1), axis=-1)
    num_eligible = tf.reduce_sum(tf.cast(eligible, "float32"), axis=-1, keepdims=True)
    count = tf.maximum(tf.cast(tf.round(rate * num_eligible), "int32"), 1)
    return (rank < count) & eligible
