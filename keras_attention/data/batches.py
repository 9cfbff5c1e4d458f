"""`batches`: makes batches of arrays from examples, for `fit` and `evaluate`."""

import numpy as np

from keras_attention.core.checks import check_whole_number
from keras_attention.core.lazy import keras, keras_internals
from keras_attention.data.columns import find_edges, read_columns
from keras_attention.data.shares import check_batches, gather_batches, set_rows
from keras_attention.files.extras import import_tensorflow

EDGES = (8, 16, 24, 32, 40, 48, 64, 96, 128, 192, 256, 384, 512)


def batches(
    examples,
    preprocessor=None,
    batch_size=32,
    *,
    max_tokens=None,
    shuffle=False,
    seed=0,
    edges=EDGES,
    augment=None,
    drop_remainder=False,
):
    """Make a `tf.data.Dataset` of (inputs, labels) batches from examples, for `fit`.

    The dataset has a known number of batches. Examples of similar lengths share a batch, to save
    padding. Each batch is padded to the next length in `edges`. So only a few lengths occur, and
    XLA compiles one program for each.

    | preprocessor | examples |
    | --- | --- |
    | `TextPreprocessor` | `Text`, `MultiLabelText` |
    | `TextPairPreprocessor` | `MatchingTexts` |
    | `TaggerPreprocessor` | `Sentence`, `DependencyTree`, `ConstituencyTree` |
    | `SequencePreprocessor` | `Pair` |
    | `QuestionPreprocessor` | (`QuestionWindow`, (first, last) token of its answer) |
    | `SpeechPreprocessor`, `SpeechTextPreprocessor` | `Recording` |
    | `ImageTextPreprocessor` | `CaptionedImage`, one row for each of its captions |
    | `ImageTextPairPreprocessor` | the same |
    | `DetectionPreprocessor` | `BoxedImage` |
    | `PixelLevelsPreprocessor` | `ImageSplit` |
    | None | `ImageSplit`, `TextWindows`, `MaskedWindows` |

    Args:
        examples: list of examples of one class, or one of the objects in the last two rows of the
            table.
        preprocessor: converts the examples to arrays with its method `columns`. None for objects
            that already contain arrays.
        batch_size: int, the maximum number of examples in a batch. The last batch of each length
            may be smaller.
        max_tokens: int, the maximum number of tokens in a batch, including padding. Batches of long
            examples then contain fewer than `batch_size` examples. None sets no limit.
        shuffle: bool, whether to draw new batches in a new order in each epoch.
        seed: int, the random seed for the order and for `augment`.
        edges: ascending ints, the padded lengths. Each is the maximum length of one bucket of
            examples. Examples longer than the last edge share one more bucket.
        augment: a Keras layer applied to the inputs, such as `ka.data.image_augmentation()`, or a
            function of (inputs, labels, seed) that returns (inputs, labels), such as
            `ka.data.detection_augmentation()`. The seed is int32 (2,). Use this for training only.
        drop_remainder: bool, whether to drop batches smaller than `batch_size`. Keras's own
            distribution API needs this, without `max_tokens`, if several processes train.

    Raises:
        ValueError: `examples` is empty.

    ```python
    import keras_attention as ka

    sentences = [ka.data.Sentence(("a",) * n, ("X",) * n) for n in (1, 2, 9)]
    preprocessor = ka.data.TaggerPreprocessor.build(sentences, characters=False)
    batches = ka.data.batches(sentences, preprocessor, batch_size=2)
    assert [labels.shape.as_list() for _, labels in batches] == [[2, 8], [1, 9]]
    assert len(batches) == 2
    ```
    """
    batch_size = check_whole_number("batches", "batch_size", batch_size)
    tf = import_tensorflow("batches")
    if not len(examples):
        raise ValueError("There is no example to make batches of: expected one or more.")
    columns = examples.columns() if preprocessor is None else preprocessor.columns(examples)
    options = {"seed": seed, "drop_remainder": drop_remainder}
    if columns.draw is not None:
        return columns.draw(tf, batch_size, **options)
    if columns.lengths is None:
        indices = _batch_in_turn(tf, columns.count, batch_size, shuffle=shuffle, **options)
    elif columns.are_sounds:
        indices = _batch_by_sound(tf, columns.lengths, batch_size, shuffle=shuffle, **options)
    else:
        size_of = _limit_tokens(batch_size, max_tokens)
        indices = batch_by_length(
            tf, columns.lengths, size_of, shuffle=shuffle, edges=edges, **options
        )
    read_inputs, read_labels = (
        read_columns(tf, x, edges) for x in (columns.inputs, columns.labels)
    )

    def gather(indices, chosen):
        return read_inputs(indices, chosen), read_labels(indices, chosen)

    if augment is None:
        return gather_batches(tf, indices, gather)

    def move(index, number):
        inputs, labels = gather(index, index)
        if isinstance(augment, keras.layers.Layer):
            keras_internals.seed_layers(augment, number % 2**30)
            augmented = augment(inputs, training=True), labels
        else:
            augmented = augment(inputs, labels, tf.cast(number, "int32"))
        return set_rows(tf, augmented, index.shape[0])

    # Each batch has its own seed, so that all runs and processes augment it in the same way.
    numbers = tf.data.Dataset.random(seed, rerandomize_each_iteration=True).batch(2)
    moved = tf.data.Dataset.zip(indices, numbers).map(move)
    return moved.apply(tf.data.experimental.assert_cardinality(len(indices))).prefetch(2)


def _limit_tokens(batch_size, max_tokens):
    """Return a function from the padded length of a batch to its maximum number of examples.

    This number is `batch_size`, or less if the batch would have more than `max_tokens` tokens.
    """
    if max_tokens is None:
        return lambda edge: batch_size
    check_whole_number("batches", "max_tokens", max_tokens)

    def size(edge):
        if edge > max_tokens:
            raise ValueError(
                f"max_tokens={max_tokens}: the longest examples are padded to {edge} tokens. Give "
                f"{edge} or more, or leave out long ones."
            )
        return min(batch_size, max_tokens // edge)

    return size


def _batch_in_turn(tf, count, batch_size, *, shuffle, seed, drop_remainder):
    """Return batches of the indices of `count` examples of equal length, a dataset of int64 (B,).

    `tf` is the module `tensorflow`. The other arguments are as in `batches`.
    """
    indices = tf.data.Dataset.range(count)
    if shuffle:
        indices = indices.shuffle(count, seed=seed)
    indices = indices.batch(batch_size, drop_remainder=drop_remainder)
    check_batches(len(indices))
    return indices


def _batch_by_sound(tf, lengths, batch_size, *, shuffle, seed, drop_remainder):
    """Return batches of the indices of recordings of similar lengths, a dataset of int64 (B,).

    `tf` is the module `tensorflow`, and `lengths` are ints (n,). The other arguments are as in
    `batches`.
    """
    lengths, size = np.array(lengths), batch_size if drop_remainder else None
    last = len(lengths) // batch_size * batch_size if drop_remainder else len(lengths)
    count = -(-last // batch_size)
    check_batches(count)
    generator = np.random.default_rng(seed)

    def cut():
        # Random factors on the lengths change the batches in each epoch.
        blur = generator.uniform(0.8, 1.25, len(lengths)) if shuffle else 1.0
        order = np.argsort(lengths * blur, kind="stable")
        cuts = [order[start : start + batch_size] for start in range(0, last, batch_size)]
        yield from (cuts[k] for k in (generator.permutation(count) if shuffle else range(count)))

    signature = tf.TensorSpec((size,), "int64")
    indices = tf.data.Dataset.from_generator(cut, output_signature=signature)
    return indices.apply(tf.data.experimental.assert_cardinality(count))


def batch_by_length(tf, lengths, size_of, *, shuffle, seed, edges, drop_remainder=False):
    """Return batches of indices of examples of similar lengths, as a dataset of int64 (B,).

    All examples of a batch belong to one bucket, a range of lengths.

    Args:
        tf: the module `tensorflow`.
        lengths: ints (n,), the length of each example.
        size_of: function that maps the edge of a bucket to its batch size. It is called only for
            buckets that contain examples.
        shuffle: bool, whether to make new batches in a new order in each epoch.
        seed: int, the random seed for this order.
        edges: ascending ints, the maximum length in each bucket. Examples longer than the last edge
            share one more bucket.
        drop_remainder: bool, whether to drop the last batch of a bucket if it is smaller. The batch
            size is then static if it is the same in all buckets.
    """
    lengths, edges = np.asarray(lengths), find_edges(lengths, edges)
    buckets = np.searchsorted(edges, lengths)
    counts = np.bincount(buckets, minlength=len(edges))
    batch_sizes = [size_of(edge) if n else 1 for edge, n in zip(edges, counts, strict=True)]
    cuts = _cuts(counts, batch_sizes, drop_remainder)
    check_batches(len(cuts))
    if shuffle:
        indices = _shuffle_buckets(tf, buckets, cuts, seed)
    else:
        order = tf.constant(np.argsort(buckets, kind="stable"))
        indices = tf.data.Dataset.from_tensor_slices(cuts).map(lambda cut: order[cut[0] : cut[1]])
    sizes = set((cuts[:, 1] - cuts[:, 0]).tolist())
    if drop_remainder and len(sizes) == 1:
        indices = indices.map(lambda batch: tf.ensure_shape(batch, (*sizes,)))
    return indices.apply(tf.data.experimental.assert_cardinality(len(cuts)))


def _cuts(counts, batch_sizes, drop_remainder):
    """Return the (begin, end) of each batch among examples sorted by bucket, int (steps, 2).

    `counts` and `batch_sizes` are lists with the number of examples and the batch size of each
    bucket. If `drop_remainder` is True, smaller batches at the end of a bucket are left out.
    """
    cuts, begin = [], 0
    for count, size in zip(counts, batch_sizes, strict=True):
        used = count // size * size if drop_remainder else count
        begins = np.arange(begin, begin + used, size)
        cuts.append(np.stack([begins, np.minimum(begins + size, begin + count)], axis=1))
        begin += count
    return np.concatenate(cuts)


def _shuffle_buckets(tf, buckets, cuts, seed):
    buckets, cuts = tf.constant(buckets, "float64"), tf.constant(cuts)

    def epoch(seeds):
        # Sorting the whole epoch at once is faster than shuffling example by example.
        draw = tf.random.stateless_uniform(tf.shape(buckets), seeds[:2], dtype="float64")
        order = tf.argsort(buckets + draw)
        turn = tf.argsort(tf.random.stateless_uniform((len(cuts),), seeds[2:]))
        batches = tf.data.Dataset.from_tensor_slices(tf.gather(cuts, turn))
        return batches.map(lambda cut: order[cut[0] : cut[1]])

    # Four numbers seed an epoch. Every pass over the dataset draws new ones.
    seeds = tf.data.Dataset.random(seed, rerandomize_each_iteration=True).batch(4)
    return seeds.take(1).flat_map(epoch)
