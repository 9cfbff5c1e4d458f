"""Data sets of TFDS by their features: made-up ones, and real ones from original files."""

import gzip
import hashlib
import json
import sys

import numpy as np
import pytest
import requests

import keras_attention as ka
from keras_attention.data.readers.tfds import find_columns

tfds = pytest.importorskip("tensorflow_datasets")
Text, Sequence, ClassLabel = tfds.features.Text, tfds.features.Sequence, tfds.features.ClassLabel


class Made(tfds.core.GeneratorBasedBuilder, skip_registration=True):
    """A builder whose class lists its features and examples."""

    VERSION = tfds.core.Version("1.0.0")
    FEATURES, SPLITS, SUPERVISED = {}, {}, None

    def _info(self):
        return self.dataset_info_from_configs(
            features=tfds.features.FeaturesDict(self.FEATURES), supervised_keys=self.SUPERVISED
        )

    def _split_generators(self, dl_manager):
        return {name: enumerate(examples) for name, examples in self.SPLITS.items()}

    def _generate_examples(self):
        raise NotImplementedError


def entities(*tags):
    return {"tokens": [f"w{i}" for i in range(len(tags))], "ner": tags, "pos": ["N"] * len(tags)}


class MadeEntities(Made):
    """As CoNLL-2003: several labels for the same tokens."""

    FEATURES = {
        "tokens": Sequence(Text()),
        "pos": Sequence(ClassLabel(names=["N", "V"])),
        "ner": Sequence(ClassLabel(names=["O", "B-PER", "I-PER", "B-LOC"])),
    }
    SPLITS = {
        "train": [entities("B-PER", "I-PER"), entities("O")],
        "dev": [entities("B-LOC", "O")],
        "test": [entities("I-PER")],
    }


class MadeFlags(Made):
    """As GoEmotions: a feature that is true or false for each label."""

    FEATURES = {"comment": Text(), "joy": tfds.features.Scalar(np.bool_), "anger": np.bool_}
    SPLITS = {
        "train": [
            {"comment": f" text {i}", "joy": i % 2 == 0, "anger": i % 3 == 0} for i in range(6)
        ],
        "test": [{"comment": "Grr!", "joy": False, "anger": True}],
    }


class MadeTopics(Made):
    """A sequence of labels for each text."""

    FEATURES = {"text": Text(), "topics": Sequence(ClassLabel(names=["art", "sport", "war"]))}
    SPLITS = {
        "train": [{"text": "a", "topics": ["war", "art"]}, {"text": "b", "topics": []}],
        "test": [{"text": "c", "topics": ["art", "art"]}],
    }


class MadeTreebank(Made):
    """As Universal Dependencies: every line of the file is a token. Without a dev split."""

    FEATURES = {
        "idx": Text(),
        "tokens": Sequence(Text()),
        "upos": Sequence(ClassLabel(names=["_", "AUX", "PART", "VERB"])),
        "xpos": Sequence(Text()),
        "head": Sequence(Text()),
        "deprel": Sequence(Text()),
    }
    SENTENCE = {
        "idx": "1",
        "tokens": ["didn't", "did", "n't", "gehört", "go"],
        "upos": ["_", "AUX", "PART", "VERB", "VERB"],
        "xpos": ["_", "VBD", "RB", "VB", "VB"],
        "deprel": ["_", "aux", "advmod", "root", "_"],
        "head": ["None", "3", "3", "0", "None"],  # a multiword token first, an empty node last
    }
    SPLITS = {"train": [SENTENCE] * 10, "test": [SENTENCE] * 3}


class MadePictures(Made):
    """Images of several sizes, with masks beside them, and validation under that name."""

    FEATURES = {
        "segmentation_mask": tfds.features.Image(shape=(None, None, 1)),
        "image": tfds.features.Image(shape=(None, None, 3)),
        "label": ClassLabel(names=["dark", "light"]),
    }
    SUPERVISED = ("image", "label")
    SPLITS = {
        split: [
            {
                "segmentation_mask": np.zeros((h, h, 1), "uint8"),
                "image": np.full((h, 4, 3), 250 * light, "uint8"),
                "label": light,
            }
            for h, light in [(4, 0), (8, 1)]
        ]
        for split in ("train", "validation", "test")
    }


CELL = tfds.features.BBox(ymin=0.25, xmin=0.5, ymax=0.75, xmax=1.0)


class MadeCells(Made):
    """As COCO: pictures of several sizes with boxes. Boxes of the test split are secret."""

    FEATURES = {
        "image": tfds.features.Image(shape=(None, None, 3)),
        "image/id": np.int64,
        "objects": Sequence(
            {
                "bbox": tfds.features.BBoxFeature(),
                "label": ClassLabel(names=["red", "white"]),
                "is_crowd": np.bool_,
            }
        ),
    }
    SPLITS = {
        split: [
            {
                "image": np.full((8, width, 3), width, "uint8"),
                "image/id": 100 + width,
                "objects": [{"bbox": CELL, "label": "white", "is_crowd": width == 12}]
                * (split != "test"),
            }
            for width in (12, 16)
        ]
        for split in ("train", "validation", "test")
    }


class MadeDigits(Made):
    """As MNIST, with only one split."""

    FEATURES = {
        "id": Text(),
        "image": tfds.features.Image(shape=(4, 4, 1)),
        "label": ClassLabel(num_classes=10),
    }
    SPLITS = {
        "train": [
            {"id": str(i), "image": np.full((4, 4, 1), 25 * i, "uint8"), "label": i}
            for i in range(10)
        ]
    }


class MadeTranslations(Made):
    """As all translation sets. One sentence has no translation."""

    FEATURES, SUPERVISED = tfds.features.Translation(["de", "en"]), ("de", "en")
    SPLITS = {
        "train": [{"de": f"Satz {i}", "en": f"sentence {i}"} for i in range(4)]
        + [{"de": "leer", "en": " "}],
        "test": [{"de": "schön", "en": "fine"}],
    }

    def _info(self):
        return self.dataset_info_from_configs(
            features=self.FEATURES, supervised_keys=self.SUPERVISED
        )


class MadeTatoeba(Made):
    """As Tatoeba: pairs without supervised keys, in one split."""

    FEATURES = {f"{s}_{t}": Text() for t in ("sentence", "language") for s in ("source", "target")}
    SPLITS = {
        "train": [
            {
                "source_sentence": "Ja.",
                "target_sentence": "Yes.",
                "source_language": "de",
                "target_language": "en",
            }
        ]
        * 2
    }


class MadePlay(Made):
    """As Tiny Shakespeare, with two texts in a split."""

    FEATURES = {"text": Text()}
    SPLITS = {
        "train": [{"text": "First Citizen:\nBefore we proceed\n"}],
        "validation": [{"text": "All:\n"}, {"text": "Speak.\n"}],
        "test": [{"text": "zum Schluß"}],
    }


class MadeReviews(Made):
    """As GLUE: the labels of the test part are secret, -1."""

    FEATURES = {"sentence": Text(), "label": ClassLabel(names=["bad", "good"]), "idx": np.int32}
    SPLITS = {
        "train": [{"sentence": f"ü{i}", "label": i % 2, "idx": i} for i in range(10)],
        "validation": [{"sentence": f"v{i}", "label": 1, "idx": i} for i in range(3)],
        "test": [{"sentence": f"t{i}", "label": -1, "idx": i} for i in range(4)],
    }


class MadeQuestions(Made):
    """As SQuAD: a validation part instead of a test part, and some questions without answers."""

    FEATURES = {
        "id": Text(),
        "context": Text(),
        "question": Text(),
        "answers": Sequence({"text": Text(), "answer_start": np.int32}),
    }
    SPLITS = {
        part: [
            {
                "id": f"{part} {i}",
                "context": f"Zwölf {i} Katzen.",
                "question": "Wie viele?",
                "answers": {"text": ["Katzen"] * (i % 3), "answer_start": [8] * (i % 3)},
            }
            for i in range(size)
        ]
        for part, size in (("train", 9), ("validation", 4))
    }


class MadeUnreachable(MadeEntities):
    def _split_generators(self, dl_manager):
        raise requests.exceptions.ConnectionError("no route to host\nand much more")


class MadeByHand(MadeEntities):
    def _split_generators(self, dl_manager):
        raise AssertionError("Manual files missing: put sheet.zip into manual/\nsee there")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("tfds")


def test_boxes_are_in_pixels_and_a_secret_test_part_is_replaced(folder):
    data = ka.data.from_tfds_boxes("made_cells", data_dir=folder, dev_fraction=0.5)
    assert (len(data.train), len(data.dev), len(data.test)) == (1, 1, 2)
    assert data.labels == ("red", "white")
    for example in data.test:
        width = example.name - 100
        assert example.size == (8, width) and example.boxes == ((width / 2, 2.0, width, 6.0),)
        assert example.objects()[0][2] == (width == 12)
        pixels, size = ka.data.DetectionPreprocessor(data.labels, (4, 4)).read(example.image)
        assert size == (8, width) and np.allclose(pixels * 255, width)
    with pytest.raises(ValueError, match="made_digits lacks image, or objects"):
        ka.data.from_tfds_boxes("made_digits", data_dir=folder)


def test_a_dev_part_with_boxes_is_the_test_part_where_none_is_named(folder):
    splits = {"train": "train", "dev": "train"}
    data = ka.data.from_tfds_boxes("made_cells", splits=splits, data_dir=folder, dev_fraction=0.5)
    assert (len(data.train), len(data.dev), len(data.test)) == (1, 1, 2)


def test_xml_entities_are_refused(folder):
    data = ka.data.from_tfds("made_entities", label_column="ner", data_dir=folder)
    assert sorted(data.train) == [(("w0",), ("O",)), (("w0", "w1"), ("B-PER", "I-PER"))]
    assert data.dev == [(("w0", "w1"), ("B-LOC", "O"))] and data.test == [(("w0",), ("I-PER",))]
    assert data.labels == ("O", "B-LOC", "B-PER", "I-PER")


def test_treebank(folder):
    words = ka.data.Sentence(("did", "n't", "gehört"), ("AUX", "PART", "VERB"))
    data = ka.data.from_tfds("made_treebank", data_dir=folder, dev_fraction=0.3)
    assert data.train == [words] * 7 and data.dev == data.test == [words] * 3
    assert data.labels == ("AUX", "PART", "VERB")
    tree = ka.data.DependencyTree(words.tokens, (3, 3, 0), ("aux", "advmod", "root"))
    trees = ka.data.from_tfds_trees("made_treebank", data_dir=folder, dev_fraction=0.3)
    assert trees.train == [tree] * 7 and trees.dev == trees.test == [tree] * 3
    with pytest.raises(ValueError, match="made_entities has no feature head: expected a treebank"):
        ka.data.from_tfds_trees("made_entities", data_dir=folder)
    data = ka.data.from_tfds(
        "made_treebank", label_column="xpos", data_dir=folder, splits={"test": "train[:2]"}
    )
    assert [s.tags for s in data.test] == [("VBD", "RB", "VB")] * 2 and data.train == data.dev == []


def test_sets_of_labels(folder):
    data = ka.data.from_tfds("made_flags", data_dir=folder, dev_fraction=0)
    assert data.labels == ("joy", "anger") and data.test == [("Grr!", ("anger",))]
    expected = [("joy",) * (i % 2 == 0) + ("anger",) * (i % 3 == 0) for i in range(6)]
    assert sorted(data.train) == [(f"text {i}", names) for i, names in enumerate(expected)]
    data = ka.data.from_tfds("made_topics", data_dir=folder, dev_fraction=0)
    assert data.labels == ("art", "sport", "war")
    assert sorted(data.train) == [("a", ("art", "war")), ("b", ())]
    assert data.test == [("c", ("art",))]


@pytest.mark.slow
def test_pictures(folder):
    data = ka.data.from_tfds("made_pictures", data_dir=folder, image_size=(6, 2))
    assert data.labels == ("dark", "light") and data.train.image_shape == (6, 2, 3)
    for split in (data.train, data.dev, data.test):
        images, labels = split.arrays()
        assert split.pixels.dtype == np.uint8 and sorted(labels) == [0, 1]
        light = np.broadcast_to(labels[:, None, None, None], images.shape)
        np.testing.assert_allclose(images, light * np.float32(250 / 255))
    with pytest.raises(ValueError, match=r"made_pictures differ in size \(shape \(None, None, 3\)"):
        ka.data.from_tfds("made_pictures", data_dir=folder)


def test_translations(folder):
    data = ka.data.from_tfds("made_translations", data_dir=folder, dev_fraction=0.25)
    assert sorted(data.train + data.dev) == [(f"Satz {i}", f"sentence {i}") for i in range(4)]
    assert len(data.dev) == 1 and data.test == [ka.data.Pair("schön", "fine")]
    data = ka.data.from_tfds("made_translations", data_dir=folder, label_column="de")
    assert data.test == [ka.data.Pair("fine", "schön")]
    with pytest.raises(ValueError, match="no label column 'fr', but de, en. Choose"):
        ka.data.from_tfds("made_translations", data_dir=folder, label_column="fr")


def test_tatoeba(folder):
    data = ka.data.from_tfds("made_tatoeba", data_dir=folder, splits={"test": "train"})
    assert data.test == [ka.data.Pair("Ja.", "Yes.")] * 2 and data.train == data.dev == []


def test_running_text(folder):
    data = ka.data.from_tfds("made_play", data_dir=folder)
    assert data.train == "First Citizen:\nBefore we proceed\n" and data.test == "zum Schluß"
    assert data.dev.split("\n\n", 1)[0] in ("All:", "Speak.") and len(data.dev) == 14
    data = ka.data.from_tfds("made_play", data_dir=folder, splits={"train": "train"})
    assert data.train + data.dev == "First Citizen:\nBefore we proceed\n" and len(data.dev) == 4
    with pytest.raises(ValueError, match="made_play has neither tokens .*text with a label"):
        ka.data.from_tfds("made_play", data_dir=folder, label_column="speaker")


def test_reviews(folder):
    data = ka.data.from_tfds("made_reviews", data_dir=folder, dev_fraction=0.2)
    assert data.labels == ("bad", "good")
    assert sorted(data.test) == [(f"v{i}", "good") for i in range(3)]
    assert len(data.train) == 8 and len(data.dev) == 2
    expected = [(f"ü{i}", ("bad", "good")[i % 2]) for i in range(10)]
    assert sorted(data.train + data.dev) == expected
    splits = {"train": "train", "dev": "validation"}
    data = ka.data.from_tfds("made_reviews", data_dir=folder, splits=splits)
    assert [len(part) for part in (data.train, data.dev, data.test)] == [10, 3, 0]
    with pytest.raises(ValueError, match="no text column 'idx', but sentence"):
        ka.data.from_tfds("made_reviews", data_dir=folder, text_column="idx")


def test_questions(folder):
    data = ka.data.from_tfds("made_questions", data_dir=folder, dev_fraction=0.2)
    assert len(data.train) == 7 and len(data.dev) == 2
    assert not all(question.answers for question in data.train)
    test = {question.id: question for question in data.test}
    assert [len(test[f"validation {i}"].answers) for i in range(4)] == [0, 1, 2, 0]
    example = test["validation 1"]
    assert (example.question, example.context) == ("Wie viele?", "Zwölf 1 Katzen.")
    assert example.answers == (ka.data.Answer("Katzen", 8),)


def test_splits(folder):
    with pytest.raises(ValueError, match=r"made_digits has no test split, but train\. Name"):
        ka.data.from_tfds("made_digits", data_dir=folder)
    splits = {"train": "train[:6]", "test": "train[6:]"}
    data = ka.data.from_tfds("made_digits", data_dir=folder, splits=splits, dev_fraction=0.5)
    assert [len(s.labels) for s in (data.train, data.dev, data.test)] == [3, 3, 4]
    for split in (data.train, data.dev, data.test):
        np.testing.assert_array_equal(split.pixels[:, 0, 0, 0], 25 * split.labels)
    data = ka.data.from_tfds("made_digits", data_dir=folder, splits={"test": "train"})
    assert [len(s.labels) for s in (data.train, data.dev, data.test)] == [0, 0, 10]
    with pytest.raises(ValueError, match=r"splits\['dev'\]='valid': expected splits of made_d"):
        ka.data.from_tfds("made_digits", data_dir=folder, splits={"dev": "valid"})
    with pytest.raises(ValueError, match="splits has validation: expected train, dev or test"):
        ka.data.from_tfds("made_digits", data_dir=folder, splits={"validation": "train"})


@pytest.mark.parametrize(
    "name, label_column, message",
    [
        ("fashion_mnits", None, "lacks the dataset 'fashion_mnits'. Near it: fashion_mnist"),
        ("zzzzzz", None, "lacks the dataset 'zzzzzz'. See its catalogue"),
        ("huggingface:x", None, "lacks the dataset 'huggingface:x'"),
        ("", None, "lacks the dataset ''"),
        ("universal_dependencies", None, r"has several configs: .* and \d+ more\. Choose one"),
        ("universal_dependencies/en_ewtt", None, r"cannot make '.*/en_ewtt'.* en_ewt, "),
        ("iris", None, "iris has neither tokens with tags, .* features are: features, label"),
        ("glue/mnli", None, "has premise, hypothesis. Choose with text_column='premise'"),
        ("conll2003", None, r"conll2003 has pos, chunks, ner. Choose with label_column='pos'"),
        ("conll2003", "upos", "conll2003 has no label column 'upos', but pos, chunks, ner"),
        ("spoken_digit", None, "spoken_digit has recordings: .* ka.data.connected_digits"),
        (
            "bccd",
            None,
            "bccd has images with boxes: read it with ka.data.from_tfds_boxes",
        ),
        ("mnist", "labels", "mnist has no label column 'labels', but label"),
        ("universal_dependencies/en_ewt", "tokens", "no label column 'tokens', but upos, .*xpos"),
    ],
)
def test_missing_names_and_columns_are_errors(folder, name, label_column, message):
    with pytest.raises(ValueError, match=message):
        ka.data.from_tfds(name, label_column=label_column, data_dir=folder)


@pytest.mark.parametrize(
    "name, label_column, expected",
    [
        ("universal_dependencies/en_ewt", None, ("tagging", "tokens", "upos")),
        ("universal_dependencies/en_ewt", "xpos", ("tagging", "tokens", "xpos")),
        ("conll2003", "chunks", ("tagging", "tokens", "chunks")),
        ("fashion_mnist", None, ("image", "image", "label")),
        ("mnist", None, ("image", "image", "label")),
        ("cifar10", None, ("image", "image", "label")),
        ("cifar100", None, ("image", "image", "label")),
        ("cifar100", "coarse_label", ("image", "image", "coarse_label")),
        ("oxford_iiit_pet", None, ("image", "image", "label")),
        ("tatoeba/tatoeba_de", None, ("pair", "source_sentence", "target_sentence")),
        ("wmt14_translate/de-en", None, ("pair", "de", "en")),
        ("ted_hrlr_translate/pt_to_en", "pt", ("pair", "en", "pt")),
        ("gigaword", None, ("pair", "document", "summary")),
        ("tiny_shakespeare", None, ("running_text", "text", None)),
        ("lm1b", None, ("running_text", "text", None)),
        ("wiki40b/en", None, ("running_text", "text", None)),
        ("imdb_reviews", None, ("text", "text", "label")),
        ("glue/sst2", None, ("text", "sentence", "label")),
        ("ag_news_subset", None, ("text", "description", "label")),
    ],
)
def test_columns_of_known_data_sets(folder, name, label_column, expected):
    builder = tfds.builder(name, data_dir=folder)
    assert find_columns(tfds, builder, name, label_column) == expected


def test_failed_download_is_a_connection_error(folder):
    with pytest.raises(ConnectionError, match="made_unreachable is not in .*no route to host$"):
        ka.data.from_tfds("made_unreachable", label_column="ner", data_dir=folder)
    with pytest.raises(ValueError, match="cannot prepare made_by_hand: .* sheet.zip into manual/$"):
        ka.data.from_tfds("made_by_hand", label_column="ner", data_dir=folder)


def test_without_tfds(monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorflow_datasets", None)
    with pytest.raises(
        ImportError, match=r"from_tfds needs TensorFlow Datasets .*install .*\[data\]"
    ):
        ka.data.from_tfds("mnist")


@pytest.mark.slow
def test_tiny_shakespeare(folder, data_root):
    content = (data_root / "lm-tiny-shakespeare" / "input.txt").read_bytes()
    address = "https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare/"
    put_in_cache(folder, [address + "input.txt"], [content])
    data = ka.data.from_tfds("tiny_shakespeare", data_dir=folder)
    assert data.train + data.dev + data.test == content.decode()
    assert [len(part) for part in (data.train, data.dev, data.test)] == [1003854, 55770, 55770]


@pytest.mark.slow
def test_german_sentences_of_tatoeba(folder, data_root):
    paths = [data_root / "mt-tatoeba" / f"tatoeba.deu-eng.{end}" for end in ("deu", "eng")]
    address = "https://raw.githubusercontent.com/facebookresearch/LASER/main/data/tatoeba/v1/"
    put_in_cache(folder, [address + p.name for p in paths], [p.read_bytes() for p in paths])
    data = ka.data.from_tfds("tatoeba/tatoeba_de", data_dir=folder, splits={"test": "train"})
    assert sorted(data.test) == sorted(ka.data.read_pairs(tuple(paths))) and len(data.test) == 1000


def put_in_cache(folder, urls, files):
    """Copy files into TFDS's folder of downloads."""
    downloads = folder / "downloads"
    downloads.mkdir(exist_ok=True)
    for url, content in zip(urls, files, strict=True):
        checksum = hashlib.sha256(content).hexdigest()
        target = downloads / tfds.core.download.resource.get_dl_fname(url, checksum)
        target.write_bytes(content)
        info = {"dataset_names": ["x"], "original_fname": url.rsplit("/", 1)[-1], "urls": [url]}
        info["url_info"] = {"checksum": checksum, "size": len(content)}
        target.with_name(target.name + ".INFO").write_text(json.dumps(info))


@pytest.mark.sweep
def test_english_web_treebank(folder, data_root):
    """Compare the official builder with the original files."""
    root = data_root / "tfds-universal-dependencies"
    names = [f"en_ewt-ud-{split}.conllu" for split in ("train", "dev", "test")]
    paths = [root / f"{name}.gz" for name in names]
    address = "https://raw.githubusercontent.com/UniversalDependencies/UD_English-EWT/r2.10/"
    files = [gzip.decompress(path.read_bytes()) for path in paths]
    put_in_cache(folder, [address + name for name in names], files)
    data = ka.data.from_tfds("universal_dependencies/en_ewt", data_dir=folder)
    expected = ka.data.from_conllu(*paths)
    assert data.labels == expected.labels and len(data.labels) == 17
    for split in ("train", "dev", "test"):
        assert sorted(getattr(data, split)) == sorted(getattr(expected, split))


@pytest.mark.sweep
def test_fashion_mnist(folder, data_root):
    root = data_root / "images-fashion-mnist"
    names = [f"{a}-{b}-ubyte.gz" for a in ("train", "t10k") for b in ("images-idx3", "labels-idx1")]
    address = "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/"
    files = [(root / name).read_bytes() for name in names]
    put_in_cache(folder, [address + name for name in names], files)
    data = ka.data.from_tfds("fashion_mnist", data_dir=folder)
    assert [len(s.labels) for s in (data.train, data.dev, data.test)] == [54000, 6000, 10000]
    assert data.train.image_shape == (28, 28, 1) and data.labels[9] == "Ankle boot"
    # TFDS shuffles. Every image must come with its own label, and none be lost
    pixels = np.frombuffer(gzip.decompress(files[2])[16:], "uint8").reshape(-1, 784)
    labels = np.frombuffer(gzip.decompress(files[3])[8:], "uint8")
    expected = sorted((image.tobytes(), label) for image, label in zip(pixels, labels, strict=True))
    actual = sorted(
        (i.tobytes(), n) for i, n in zip(data.test.pixels, data.test.labels, strict=True)
    )
    assert actual == expected


@pytest.mark.sweep
def test_bccd(folder, data_root):
    """Compare counts with the catalogue, less two boxes without area."""
    path = data_root / "tfds-bccd" / "v1.0.zip"
    address = "https://github.com/Shenggan/BCCD_Dataset/archive/v1.0.zip"
    put_in_cache(folder, [address], [path.read_bytes()])
    data = ka.data.from_tfds_boxes("bccd", data_dir=folder)
    assert [len(part) for part in (data.train, data.dev, data.test)] == [205, 87, 72]
    assert data.labels == ("RBC", "WBC", "Platelets")
    assert data.notes == ("2 boxes without area are left out",)
    assert {example.size for example in data.train} == {(480, 640)}


@pytest.mark.sweep
def test_xquad(folder, data_root):
    """Compare the official builder with the original file."""
    path = data_root / "qa-xquad" / "xquad.en.json"
    address = "https://github.com/deepmind/xquad/raw/master/xquad.en.json"
    put_in_cache(folder, [address], [path.read_bytes()])
    data = ka.data.from_tfds("xquad/en", data_dir=folder)
    assert sorted(data.test) == sorted(ka.data.read_questions(path)) and len(data.test) == 1190
    assert data.train == data.dev == []
