"""`evaluate` reproduces the recorded scores, and `predict` answers the same with every format."""

import io
import json

import numpy as np
import pytest
import tensorflow as tf

import keras_attention as ka
from keras_attention.cli import sources
from keras_attention.cli.evaluate import collect_inputs, show_lines
from tests.grids import quick


def printed(out, name):
    line = next(line for line in out.splitlines() if line.startswith(name))
    return float(line.split()[1])


@pytest.mark.parametrize("kind", ["keras", "saved_model", "litert-int8"])
def test_evaluate_of_a_file_equals_the_recorded_score(run, tagger, corpus, kind):
    code, out, _ = run("evaluate", tagger, "--file", corpus / "test.conllu", "--with", kind)
    scores = json.loads((tagger / "scores.json").read_text("utf-8"))["test"]
    expected = scores.get(kind, scores["keras"])["accuracy"]
    assert code == 0 and printed(out, "accuracy") == pytest.approx(100 * expected, abs=0.005)
    assert "Classes" in out and "\nNOUN " in out


@pytest.mark.slow
def test_evaluate_uses_the_data_set_of_the_training(run, classifier):
    scores = json.loads((classifier / "scores.json").read_text("utf-8"))
    code, out, _ = run("evaluate", classifier, "--with", "litert")
    assert code == 0 and "(test)" in out
    expected = scores["test"]["litert"]["accuracy"]
    assert printed(out, "accuracy") == pytest.approx(100 * expected, abs=0.005)
    code, out, _ = run("evaluate", classifier, "--split", "dev")
    assert printed(out, "accuracy") == pytest.approx(100 * scores["dev"]["accuracy"], abs=0.005)


def test_evaluate_refuses(run, tagger, corpus, tmp_path):
    broken = tmp_path / "broken.conllu"
    broken.write_text("1\tDogs\tdog\tNOUN\t_\t_\t_\t_\t_\t_\n3\tbark\t_\tVERB\t_\t_\t_\t_\t_\t_\n")
    other = tmp_path / "other.conllu"
    other.write_text("1\tDogs\tdog\tX\t_\t_\t_\t_\t_\t_\n")
    cases = [
        ((), "trained on files: name one with --file"),
        (("--file", broken), "broken.conllu:2: expected the word with ID 2, found ID 3"),
        (("--file", other), "as 'X', which is not among the labels"),
        (("--file", corpus / "test.conllu", "--split", "final"), "--split final: expected one of"),
    ]
    for words, message in cases:
        code, _, err = run("evaluate", tagger, *words)
        assert code == 2 and message in err and err.count("\n") == 1, message


KINDS = ["keras", "saved_model", "litert", "litert-int8"]


@pytest.mark.parametrize("kind", quick(KINDS, "litert"))
def test_every_format_prints_the_same_tags(run, tagger, kind):
    code, out, err = run("predict", tagger, "The cat sat.", "a big dog ran.", "--with", kind)
    assert (code, err) == (0, "")
    lines = [line.split() for line in out.splitlines()]
    words, tags = zip(*(line[:2] for line in lines if line), strict=True)
    assert words == ("The", "cat", "sat", ".", "a", "big", "dog", "ran", ".")
    assert tags == tuple("DET NOUN VERB PUNCT DET ADJ NOUN VERB PUNCT".split())
    assert [] in lines  # an empty line between two sentences
    assert out.splitlines()[1].startswith("cat  NOUN   ")  # aligned


@pytest.mark.parametrize("name", ["model.keras", "saved_model", "model.int8.tflite"])
def test_predict_takes_a_file_of_the_preset(run, tagger, name):
    code, out, _ = run("predict", tagger / name, "the dog ran.")
    tags = [line.split()[1] for line in out.splitlines()]
    assert code == 0 and tags == ["DET", "NOUN", "VERB", "PUNCT"]


@pytest.mark.slow
@pytest.mark.parametrize("kind", [None, "litert-int8"])
def test_predict_reads_picture_files(run, classifier, tmp_path, kind):
    images = sources.load_digits().train.pixels[:2]
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


@pytest.mark.slow
def test_pictures_are_read_as_in_training(classifier, tmp_path):
    image = sources.load_digits().train.pixels[0]
    path = tmp_path / "digit.png"
    path.write_bytes(tf.io.encode_png(tf.cast(tf.round(image * 255), "uint8")).numpy())
    preprocessor = ka.tasks.from_preset(classifier).preprocessor
    np.testing.assert_allclose(preprocessor([path])[0], image, atol=1 / 255)
    np.testing.assert_allclose(preprocessor([path], invert=True)[0], 1 - image, atol=1 / 255)


def test_ctrl_c_is_one_sentence(run, tagger, monkeypatch):
    def stop(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("keras_attention.cli.evaluate.predict", stop)
    assert run("predict", tagger, "x") == (130, "", "keras-attention: interrupted.\n")


@pytest.mark.slow
def test_predict_refuses(run, tagger, classifier, tmp_path):
    (tmp_path / "text.png").write_text("no picture")
    (tmp_path / "no.tflite").write_text("no model")
    cases = [
        ((tagger, "word " * 600), "600 tokens, over this model's limit of 512"),
        ((tagger, "   "), "has no word"),
        ((tmp_path / "absent", "x"), "There is no file or folder"),
        ((tmp_path / "no.tflite", "x"), "no.tflite is not a model"),
        ((tmp_path, "x"), "has no model: expected one of"),
        ((classifier, tmp_path / "text.png"), "text.png is damaged or not an image"),
        ((tagger, "word", "--top-k", "3"), "--top-k does not apply to sequence_labeler"),
        ((classifier, "x.png", "--seed", "1"), "--seed does not apply to vision_transformer"),
        ((classifier, tmp_path), "is a folder: name the image files in it"),
        ((classifier, tmp_path / "absent.png"), "absent.png is missing: expected an image file"),
    ]
    for words, message in cases:
        code, out, err = run("predict", *words)
        assert (code, out) == (2, "") and message in err and err.count("\n") == 1, message


class Echo:
    """A task that answers with its input, as a line or as a block."""

    def __init__(self, builder):
        self.builder = builder

    def predict(self, inputs):
        return inputs

    def stream(self, inputs):
        return [[] for _ in inputs]


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("a\n\nb\n \n\t\nc\n", ["a", "", "b", "", "", "c"]),
        ("\na\n\n", ["", "a", ""]),
        ("\r\na\u2028b\r\n", ["", "a\u2028b"]),
        ("a", ["a"]),
        ("\n", [""]),
    ],
)
def test_each_line_of_input_gets_a_line_of_output(text, lines, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.StringIO(text, newline=""))
    inputs = collect_inputs([], "-")
    (tmp_path / "a.txt").write_bytes(text.encode())
    assert collect_inputs([], tmp_path / "a.txt") == inputs
    show_lines(Echo("seq2seq_transformer"), inputs, {})
    assert capsys.readouterr().out.split("\n") == [*lines, ""]
    show_lines(Echo("causal_language_model"), inputs, {})
    assert capsys.readouterr().out == "\n".join(f"{line}\n" if line else "" for line in lines)


def test_empty_file_has_no_lines(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    with pytest.raises(ValueError, match="There is nothing to predict"):
        collect_inputs([], "-")
