"""Shares of batches: they make up the batch, and each process reads only its own."""

import re

import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_attention as ka
from keras_attention.data.shares import MAKER, Share, read_share
from tests.grids import quick
from tests.tables import assert_lists

HALVES = [Share(4, (0, 1)), Share(4, (2, 3))]


def texts(**options):
    examples = [ka.data.Text("a b c d e f"[: 2 * n - 1], "xy"[n % 2]) for n in (1, 4, 3, 2) * 5]
    preprocessor = ka.data.TextPreprocessor.build(examples)
    return ka.data.batches(examples, preprocessor, 4, edges=(2,), **options)


def several_labels(**options):
    examples = [ka.data.MultiLabelText("a b c d"[: 2 * n - 1], ("x",)) for n in (1, 4, 3, 2) * 5]
    preprocessor = ka.data.TextPreprocessor.build(examples, labels=["x", "y"])
    return ka.data.batches(examples, preprocessor, 4, edges=(2,), **options)


def matches(**options):
    texts = ["a b c d"[: 2 * n - 1] for n in (1, 4, 3, 2) * 5]
    examples = [ka.data.MatchingTexts(text, text[::-1]) for text in texts]
    preprocessor = ka.data.TextPairPreprocessor.build(examples)
    return ka.data.batches(examples, preprocessor, 4, edges=(2,), **options)


def sentences(**options):
    examples = [ka.data.Sentence(("a",) * n, ("X",) * n) for n in (1, 7, 2, 5, 3) * 5]
    preprocessor = ka.data.TaggerPreprocessor.build(examples)
    return ka.data.batches(examples, preprocessor, 4, edges=(3,), **options)


def dependencies(**options):
    tree = ka.data.DependencyTree
    trees = [
        tree(("a",) * n, (*range(2, n + 1), 0), ("x",) * (n - 1) + ("root",)) for n in (1, 4, 2) * 5
    ]
    tagged = [ka.data.Sentence(tree.tokens, tree.relations) for tree in trees]
    preprocessor = ka.data.TaggerPreprocessor.build(tagged)
    return ka.data.batches(trees, preprocessor, 4, edges=(2,), **options)


def constituents(**options):
    text = "(S (NP (NNS Dogs)) (VP (VBP bark)))" * 5 + "(S (VP (VB Go)))" * 5
    trees = ka.data.parse_brackets(text)
    labels = ka.data.ConstituencyTree.collect(trees, dev_fraction=0).labels
    tagged = [ka.data.Sentence(tree.tokens, tree.tags) for tree in trees]
    preprocessor = ka.data.TaggerPreprocessor.build(tagged, labels)
    return ka.data.batches(trees, preprocessor, 4, edges=(5,), **options)


def questions(**options):
    asked = [ka.data.Question("What?", "a b c d e"[: 2 * n - 1], ()) for n in (1, 5, 3) * 5]
    preprocessor = ka.data.QuestionPreprocessor.build(asked)
    windows = [preprocessor.encode(*question[:2]).windows[0] for question in asked]
    spans = [(0, k) for k in range(len(windows))]
    return ka.data.batches(
        list(zip(windows, spans, strict=True)), preprocessor, 4, edges=(5,), **options
    )


def pairs(**options):
    examples = [("ab" * n, "ba" * (6 - n)) for n in (1, 5, 2, 3) * 5]
    characters = ka.data.Characters.build(["ab"])
    preprocessor = ka.data.SequencePreprocessor(characters, characters)
    return ka.data.batches(examples, preprocessor, 4, edges=(8,), **options)


def images(**options):
    pixels = np.random.default_rng(0).integers(0, 256, (11, 3, 3, 1)).astype("uint8")
    return ka.data.batches(ka.data.ImageSplit(pixels, np.arange(11)), None, 4, **options)


def captions(**options):
    examples = [ka.data.CaptionedImage(np.full((4, 4, 1), k / 9), ("a " * k,)) for k in range(1, 8)]
    preprocessor = ka.data.ImageTextPreprocessor(
        ka.data.Words.build(["a"]), image_size=4, channels=1
    )
    return ka.data.batches(examples, preprocessor, 4, **options)


def matched_images(**options):
    examples = [ka.data.CaptionedImage(np.full((4, 4, 1), k / 9), ("a " * k,)) for k in range(1, 8)]
    preprocessor = ka.data.ImageTextPairPreprocessor.build(examples, (4, 4), 1)
    return ka.data.batches(examples, preprocessor, 4, **options)


def boxes(**options):
    image = np.zeros((8, 8, 3), "uint8")
    examples = [
        ka.data.BoxedImage(image + k, [(0, 0, 4, 4 + k % 4)], ["cell"], size=(8, 8))
        for k in range(7)
    ]
    preprocessor = ka.data.DetectionPreprocessor(["cell"], image_size=(8, 8))
    return ka.data.batches(examples, preprocessor, 4, **options)


def levels(**options):
    split = ka.data.ImageSplit(np.random.default_rng(0).random((7, 2, 2, 1)), np.arange(7) % 2)
    preprocessor = ka.data.PixelLevelsPreprocessor(["a", "b"], 2, num_levels=4)
    return ka.data.batches(split, preprocessor, 4, **options)


def sounds():
    random = np.random.default_rng(0)
    return [
        ka.data.Recording(random.normal(size=n).astype("float32"), "a" * (n % 5)) for n in (9, 5, 7)
    ] * 3


def recordings(**options):
    preprocessor = ka.data.SpeechPreprocessor(["a"], sampling_rate=8000)
    return ka.data.batches(sounds(), preprocessor, 4, **options)


def speech(**options):
    characters = ka.data.Characters.build(["a"])
    preprocessor = ka.data.SpeechTextPreprocessor(characters, sampling_rate=8000)
    return ka.data.batches(sounds(), preprocessor, 4, **options)


TOKENS = np.random.default_rng(0).integers(5, 30, 63)


def windows(shuffle=False, **options):
    steps = 3 if shuffle else None
    return ka.data.batches(ka.data.TextWindows(TOKENS, 5, steps), None, 4, **options)


def hidden(shuffle=False, **options):
    characters = ka.data.Characters.build(["abcdefghijklmnopqrstuvwxyz"], mask_token=True)
    steps = 3 if shuffle else None
    windows = ka.data.MaskedWindows(TOKENS, 5, characters, steps)
    return ka.data.batches(windows, None, 4, **options)


BATCHES = {
    "text": texts,
    "multi_label": several_labels,
    "matching": matches,
    "tagging": sentences,
    "dependency": dependencies,
    "constituency": constituents,
    "question": questions,
    "seq2seq": pairs,
    "image": images,
    "caption": captions,
    "matched_images": matched_images,
    "detection": boxes,
    "pixel": levels,
    "recording": recordings,
    "speech_text": speech,
    "language_model": windows,
    "masked_language_model": hidden,
}
# Masks are drawn for a batch as a whole.
WHOLE = {"masked_language_model"}


def arrays(batch):
    return [np.asarray(array) for array in tf.nest.flatten(batch)]


@pytest.mark.parametrize("shuffle", quick([False, True], False))
@pytest.mark.parametrize("name", quick(BATCHES, "recording", "tagging"))
def test_shares_make_up_the_batch(name, shuffle):
    """Compare lengths, too. All processes read a batch that cannot be cut in four."""
    batches = BATCHES[name](shuffle=shuffle)
    assert hasattr(batches, MAKER) == (name not in WHOLE)
    shares = [read_share(tf, BATCHES[name](shuffle=shuffle), share) for share in HALVES]
    assert [len(share) for share in shares] == [len(batches)] * 2
    sizes = set()
    for whole, (first, rows), (second, _) in zip(batches, *shares, strict=True):
        whole, first, second = arrays(whole), arrays(first), arrays(second)
        sizes.add(int(rows))
        assert rows == len(whole[0])
        if rows % 4:
            first, second = first, [array[rows:] for array in second]
        for all_rows, *parts in zip(whole, first, second, strict=True):
            np.testing.assert_allclose(np.concatenate(parts), all_rows, atol=1e-6)
    assert 4 in sizes and (shuffle or len(sizes) > 1), sizes


def test_only_pictures_of_the_share_are_read(monkeypatch):
    read = []
    preprocessor = ka.data.DetectionPreprocessor
    original = preprocessor.read

    def count(self, image):
        read.append(int(np.asarray(image).max()))
        return original(self, image)

    monkeypatch.setattr(preprocessor, "read", count)
    for _ in read_share(tf, boxes(drop_remainder=True), HALVES[1]):
        pass
    assert sorted(read) == [2, 3]


def test_other_data_sets_are_read_whole_and_cut():
    batches = tf.data.Dataset.from_tensor_slices({"x": np.arange(11)}).batch(4)
    shares = [
        [(b["x"].tolist(), n) for b, n in read_share(tf, batches, share).as_numpy_iterator()]
        for share in HALVES
    ]
    assert shares == [
        [([0, 1], 4), ([4, 5], 4), ([8, 9, 10], 3)],
        [([2, 3], 4), ([6, 7], 4), ([8, 9, 10], 3)],
    ]


QUICK = ("seq2seq", "image", "tagging", "recording")


@pytest.mark.parametrize(
    "name",
    [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in BATCHES],
)
def test_keras_distributes_full_batches(name):
    """Keras's distributions cut all batches by the static batch size."""
    batches = BATCHES[name](drop_remainder=True)
    assert {len(arrays(batch)[0]) for batch in batches} == {4}
    distributed = []
    for process in (0, 1):
        layout = keras.distribution.DataParallel(devices=["cpu:0", "cpu:1"])
        layout._num_processes, layout._process_id, layout._is_multi_process = 2, process, True
        distributed.append([arrays(batch) for batch in layout.distribute_dataset(batches)])
    for whole, first, second in zip(batches, *distributed, strict=True):
        for all_rows, *parts in zip(arrays(whole), first, second, strict=True):
            np.testing.assert_array_equal(np.concatenate(parts), all_rows)


def test_no_full_batch_is_refused():
    with pytest.raises(ValueError, match="drop_remainder=True leaves no batch.*smaller batch_size"):
        ka.data.batches(
            ka.data.ImageSplit(np.zeros((3, 2, 2, 1)), np.zeros(3)), None, 4, drop_remainder=True
        )


def test_the_table_of_batches_names_every_class_with_columns():
    table = [line for line in ka.data.batches.__doc__.split("\n") if line.strip().startswith("|")]
    names = set(re.findall(r"`(\w+)`", "".join(table)))
    members = {name: getattr(ka.data, name) for name in ka.data.__all__}
    expected = {name for name, member in members.items() if hasattr(member, "columns")}
    assert_lists("the table in the docstring of ka.data.batches", expected & names, expected)
    assert all(hasattr(ka.data, name) for name in names)
