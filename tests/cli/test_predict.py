"""`predict`: the same answer from every format."""

import numpy as np
import pytest
import tensorflow as tf

from keras_attention.cli import digits

KINDS = ["keras", "saved_model", "litert", "litert-int8"]


@pytest.mark.parametrize("kind", KINDS)
def test_tokens_with_tags_from_every_format(run, tagger, kind):
    code, out, err = run("predict", tagger, "The cat sat.", "a big dog ran.", "--with", kind)
    assert (code, err) == (0, "")
    lines = [line.split() for line in out.splitlines()]
    words, tags = zip(*(line[:2] for line in lines if line), strict=True)
    assert words == ("The", "cat", "sat", ".", "a", "big", "dog", "ran", ".")
    assert tags == tuple("DET NOUN VERB PUNCT DET ADJ NOUN VERB PUNCT".split())
    assert [] in lines  # an empty line between two sentences
    assert out.splitlines()[1].startswith("cat  NOUN   ")  # aligned


@pytest.mark.parametrize("name", ["model.keras", "saved_model", "model.int8.tflite"])
def test_a_file_in_the_folder_will_do(run, tagger, name):
    code, out, _ = run("predict", tagger / name, "the dog ran.")
    tags = [line.split()[1] for line in out.splitlines()]
    assert code == 0 and tags == ["DET", "NOUN", "VERB", "PUNCT"]


@pytest.mark.parametrize("kind", [None, "litert-int8"])
def test_pictures_from_files(run, classifier, tmp_path, kind):
    images = digits.load().train.pixels[:2]
    paths = []
    for k, image in enumerate(images):
        large = tf.image.resize(image * 255.0, (32, 32), method="nearest")
        paths.append(tmp_path / f"{k}.png")
        paths[-1].write_bytes(tf.io.encode_png(tf.cast(large, "uint8")).numpy())
    words = ["--with", kind] if kind else []
    code, out, _ = run("predict", classifier, *paths, "--top", 10, *words)
    assert code == 0 and out.count("class") == 2 and str(paths[0]) in out
    block = out.split("\n\n")[0].splitlines()[2:]
    shares = [float(line.split()[1]) for line in block]
    assert len(block) == 10 and shares == sorted(shares, reverse=True)
    assert sum(shares) == pytest.approx(100, abs=0.1)


def test_pictures_are_read_as_the_model_saw_them(classifier, tmp_path):
    from keras_attention.cli.images import read_picture
    from keras_attention.cli.predict import read_manifest

    image = digits.load().train.pixels[0]
    path = tmp_path / "digit.png"
    path.write_bytes(tf.io.encode_png(tf.cast(tf.round(image * 255), "uint8")).numpy())
    manifest = read_manifest(classifier)
    np.testing.assert_allclose(read_picture(path, manifest, False), image, atol=1 / 255)
    np.testing.assert_allclose(read_picture(path, manifest, True), 1 - image, atol=1 / 255)


def test_ctrl_c_is_one_sentence(run, tagger, monkeypatch):
    def stop(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("keras_attention.cli.predict.predict", stop)
    assert run("predict", tagger, "x") == (130, "", "keras-attention: interrupted.\n")


def test_bad_input(run, tagger, classifier, tmp_path):
    (tmp_path / "text.png").write_text("no picture")
    (tmp_path / "no.tflite").write_text("no model")
    cases = [
        ((tagger, "word " * 600), "600 tokens, over this model's limit of 512"),
        ((tagger, "   "), "holds no word"),
        ((tmp_path / "absent", "x"), "There is no file or folder"),
        ((tmp_path / "no.tflite", "x"), "no.tflite is no model"),
        ((tmp_path, "x"), "holds no model: none of"),
        ((classifier, tmp_path / "text.png"), "text.png is no picture"),
        ((tagger, "word", "--top-k", "3"), "--top-k is not for models of sequence_labeler"),
        ((classifier, "x.png", "--seed", "1"), "--seed is not for models of vision_transformer"),
        ((classifier, tmp_path / "absent.png"), "absent.png: this model wants picture files"),
    ]
    for words, message in cases:
        code, out, err = run("predict", *words)
        assert (code, out) == (2, "") and message in err and err.count("\n") == 1, message
