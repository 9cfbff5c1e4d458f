"""The `explain` command."""

import pytest

from tests.visualization.test_attention_page import read_page

TEXT = "What a lovely day!"


def test_explain_writes_a_page(run, tmp_path):
    path = tmp_path / "new" / "page.html"
    code, out, err = run("explain", "emotions", TEXT, "--output", path)
    first, last = out.splitlines()
    assert (code, err) == (0, "") and last == f"{path} is ready for any browser."
    assert first.split("  ")[0] == "love" and "  lovely " in first
    code, out, _ = run("explain", "emotions", TEXT, "--target", "joy", "--output", path)
    assert code == 0 and out.split()[:2] == ["joy", "day"]
    content = read_page(path.read_text("utf-8"))
    assert content["title"] == "Why “joy”?"
    assert content["sequences"][0]["names"] == ["What", "a", "lovely", "day", "!"]


def test_explain_reports_bad_input_in_one_sentence(run, tmp_path):
    path = tmp_path / "page.html"
    for words, message in {
        (TEXT, "--target", "fun"): "there is no such output. Expected a number from 0 to 27, or",
        ("",): "'' holds no word",
        (TEXT, "--context", __file__): "--context does not apply to multi_label_classifier",
        (TEXT, "--output", tmp_path): "is a folder: name a file, such as",
    }.items():
        words = ["--output", path, *words] if "--output" not in words else words
        code, out, err = run("explain", "emotions", *words)
        assert code == 2 and out == "" and message in err and err.count("\n") == 1, err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_explain_takes_images(run, tmp_path):
    folder, path = "saved_models/digits-vit", tmp_path / "page.html"
    code, out, err = run("explain", folder, f"{folder}/example.png", "--output", path)
    assert (code, err) == (0, "") and out == f"{path} is ready for any browser.\n"
    assert read_page(path.read_text("utf-8"))["sequences"][0]["grid"] == [4, 4]
