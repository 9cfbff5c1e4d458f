"""Batches for masked language models: windows of running text in which some tokens are hidden.

KerasHub's `MaskedLMMaskGenerator` is not used: it takes no seed, so that no run can be repeated and
no score compared, it puts padding and the other special tokens among the random ones, and it gives
positions, where our losses take labels of every place.
"""

import numpy as np

from keras_attention.core.checks import check_whole_number
from keras_attention.data.readers.corpus import check_tokens
from keras_attention.data.shares import check_batches
from keras_attention.data.tokenizers.pretrained import PretrainedTokenizer
from keras_attention.data.tokenizers.subwords import PADDING_ID, SPECIAL
from keras_attention.files.extras import import_tensorflow

OWNER = "masked_language_model_batches"


def masked_language_model_batches(
    tokens,
    window_length,
    tokenizer,
    batch_size=32,
    *,
    steps=None,
    mask_selection_rate=0.15,
    mask_token_rate=0.8,
    random_token_rate=0.1,
    seed=0,
    drop_remainder=False,
):
    """A `tf.data.Dataset` of (token ids, labels) batches for `fit` and `evaluate`.

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
        batch_size: int B, windows per batch.
        steps: int, how many batches of windows at random places make an epoch: for training. None
            for windows one after another, in which every pass hides the same tokens: for scoring.
        mask_selection_rate: float, the share of tokens that are selected, rounded, but at least one
            of each window.
        mask_token_rate, random_token_rate: float, the shares of these that become `[MASK]` and
            another token.
        seed: int, of places and masks.
        drop_remainder: bool, as in `language_model_batches`.

    Returns:
        A dataset whose cardinality is known: int32 ids and labels (B, T), labels -1 where no token
        was selected. Of windows in order the last batch may be smaller; what its last window lacks
        is padding, with label -1.

    Example:

    ```python
    import numpy as np
    import keras_attention as ka

    text = "the cat sat on the mat, the rat ate the cat. " * 10
    characters = ka.data.Characters.build([text], mask_token=True)
    (tokens,) = characters.encode([text])
    batches = ka.data.masked_language_model_batches(tokens, 40, characters, 4, steps=3)
    ids, labels = next(iter(batches))
    assert ids.shape == labels.shape == (4, 40) and len(batches) == 3
    selected = labels.numpy() >= 0
    assert (selected.sum(axis=1) == 6).all()  # 15 % of 40
    assert (ids.numpy()[~selected] != characters.mask_token_id).all()
    ```
    """
    tf = import_tensorflow(OWNER)
    tokens = check_tokens(OWNER, tokens)
    window_length = check_whole_number(OWNER, "window_length", window_length)
    batch_size = check_whole_number(OWNER, "batch_size", batch_size)
    rates = {"mask_selection_rate": mask_selection_rate, "mask_token_rate": mask_token_rate}
    _check_rates(**rates, random_token_rate=random_token_rate)
    mask_token_id = _find_mask_token(tokenizer)
    special, around, padding_id = _find_special(tokenizer)
    is_ordinary = np.zeros(max(len(tokenizer), *(i + 1 for i in special)), bool)
    is_ordinary[: len(tokenizer)] = True
    is_ordinary[[*special, mask_token_id]] = False
    ordinary_ids = tf.constant(np.flatnonzero(is_ordinary), "int32")
    text_length = window_length - sum(map(len, around))
    if text_length < 1:
        raise ValueError(
            f"{OWNER}(window_length={window_length}): special tokens leave no room for a text."
        )

    def hide(ids, seeds):
        selected = select_tokens(tf, tf.gather(is_ordinary, ids), mask_selection_rate, seeds[:2])
        draw = tf.random.stateless_uniform(tf.shape(ids), seeds[2:])
        others = tf.random.stateless_uniform(
            tf.shape(ids), seeds[1:3], 0, len(ordinary_ids), "int32"
        )
        others = tf.gather(ordinary_ids, others)
        given = tf.where(draw < mask_token_rate + random_token_rate, others, ids)
        given = tf.where(draw < mask_token_rate, mask_token_id, given)
        return tf.where(selected, given, ids), tf.where(selected, ids, -1)

    if steps is None:
        windows = _cut_in_order(tokens, text_length, around, padding_id)
        windows = tf.data.Dataset.from_tensor_slices(windows)
        windows = windows.batch(batch_size, drop_remainder=drop_remainder)
        check_batches(len(windows))
        # Four numbers seed a batch: its masks stay as they are.
        seeds = tf.data.Dataset.random(seed, rerandomize_each_iteration=False).batch(4)
        return tf.data.Dataset.zip(windows, seeds).map(hide).prefetch(2)
    check_whole_number(OWNER, "steps", steps)
    places = len(tokens) - text_length + 1
    if places < 1:
        raise ValueError(
            f"The text has {len(tokens)} tokens: too few for a window of {window_length}. Choose a "
            "smaller window_length."
        )
    text, offsets = tf.constant(tokens), tf.range(text_length)
    before, after = (tf.tile([tf.constant(ids, "int32")], (batch_size, 1)) for ids in around)

    def cut(seeds):
        begins = tf.random.stateless_uniform((batch_size, 1), seeds[:2], 0, places, "int32")
        windows = tf.gather(text, begins + offsets)
        return hide(tf.concat([before, windows, after], axis=1), seeds[2:])

    # Six numbers seed a batch; every pass over the data set draws new ones.
    seeds = tf.data.Dataset.random(seed, rerandomize_each_iteration=True).batch(6)
    return seeds.take(steps).map(cut).prefetch(2)


def select_tokens(tf, eligible, rate, seed):
    """bool (B, T): in each row the share `rate` of the eligible tokens, at least one.

    Args:
        eligible: bool (B, T).
        rate: float.
        seed: ints (2,).
    """
    draw = tf.where(eligible, tf.random.stateless_uniform(tf.shape(eligible), seed), 2.0)
    rank = tf.argsort(tf.argsort(draw, axis=-1), axis=-1)
    there = tf.reduce_sum(tf.cast(eligible, "float32"), axis=-1, keepdims=True)
    count = tf.maximum(tf.cast(tf.round(rate * there), "int32"), 1)
    return (rank < count) & eligible


def _find_mask_token(tokenizer):
    """The id of `[MASK]`, or an error that says how to get one."""
    if (mask_token_id := getattr(tokenizer, "mask_token_id", None)) is None:
        raise ValueError(
            f"{OWNER}: {tokenizer!r} has no [MASK]: build it with mask_token=True, as "
            "ka.data.Subwords.build(texts, vocabulary_size, mask_token=True)."
        )
    return mask_token_id


def _find_special(tokenizer):
    """(ids that are never hidden, those before and after a window, the padding)."""
    if isinstance(tokenizer, PretrainedTokenizer):
        return tokenizer.special_ids, tokenizer.around, tokenizer.padding_id or 0
    return range(len(SPECIAL)), ((), ()), PADDING_ID


def _cut_in_order(tokens, length, around, padding_id):
    """Ids (n, T) of windows one after another, padding after the last one."""
    before, after = around
    ids = [[*before, *tokens[k : k + length], *after] for k in range(0, len(tokens), length)]
    windows = np.full((len(ids), len(before) + length + len(after)), padding_id, "int32")
    for window, row in zip(windows, ids, strict=True):
        window[: len(row)] = row
    return windows


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
