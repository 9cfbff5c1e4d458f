"""Pages in headless Chromium answer like `predict`, and show attention."""

import json
import subprocess

import keras
import numpy as np
import pytest

import keras_attention as ka
from keras_attention.cli import sources
from keras_attention.web import litert_js, write_page
from keras_attention.web.page import KINDS, STATIC
from tests.browser import session
from tests.grids import sampled
from tests.tasks.test_task import make_sentences
from tests.web.opened_page import open_page

SIZE = {"num_layers": 1, "num_heads": 2, "hidden_dim": 16, "dropout": 0.0}
MIXED = "le cafe\u0301 हिन्दी می\u200cخواهم 👍🏽!!"
GERMAN = "null eins zwei drei vier".split()
ENGLISH = "zero one two three four".split()


@pytest.fixture(scope="session", autouse=True)
def modules():
    """Use the LiteRT.js of the browser tests."""
    with pytest.MonkeyPatch.context() as patch:
        if (session.MODULES / "@litertjs").is_dir():
            patch.setenv(litert_js.FOLDER, str(session.MODULES))
        yield


def need_browser():
    if missing := session.find_missing():
        pytest.skip(f"No browser to test with: {missing}.")
    try:
        session.install_packages()
    except subprocess.CalledProcessError as error:
        pytest.skip(f"LiteRT.js could not be fetched: {error.stderr.strip()[-300:]}")


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    """Return a function that opens the page of a task. All pages close at the end."""
    need_browser()
    stack = []

    def opened(task, **options):
        folder = tmp_path_factory.mktemp("pages") / "page"
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv(litert_js.FOLDER, str(session.MODULES))
            write_page(task, folder, **options)
        context = open_page(folder)
        stack.append(context)
        return context.__enter__()

    yield opened
    for context in stack:
        context.__exit__(None, None, None)


@pytest.mark.slow
def test_page_shows_tags_and_attention_of_the_clicked_word(opened):
    train = make_sentences(80, 0)
    task = ka.tasks.SequenceLabeler.from_data(train, learning_rate=0.02, batch_size=8, **SIZE)
    task.fit(train, epochs=3, verbose=False)
    page = opened(task, example="the cat saw a tree .")
    for text in [
        "the cat sat.",
        "a dog, the Überraschung ran!",
        "naïve co-operation: 3.5 don't",
        MIXED,
    ]:
        expected = [(t.token, t.tag) for t in task.predict([text])[0]]
        results = page.ask(text)
        assert [(one["token"], one["tag"]) for one in results] == expected
        shares = [one["probability"] for one in results]
        expected_answer = [t.probability for t in task.predict([text])[0]]
        np.testing.assert_allclose(shares, expected_answer, atol=0.02)
    page.ask("the cat saw a tree .")
    seen = page.run(
        """
        const tokens = [...document.querySelectorAll('#tokens button')];
        tokens[1].focus();
        tokens[1].click();
        return {
          pressed: tokens.map(token => token.getAttribute('aria-pressed')),
          seen: tokens.map(token => Number(token.style.getPropertyValue('--seen'))),
          hint: document.querySelector('.hint').textContent,
          status: document.getElementById('status').textContent,
          text: tokens.map(token => token.firstChild.textContent),
        };
        """
    )
    assert seen["text"] == "the cat saw a tree .".split()
    assert seen["pressed"] == ["false", "true", *["false"] * 4] and seen["status"] == ""
    (weights,) = task.attention("the cat saw a tree .").weights.values()
    row = np.asarray(weights)[0].mean(axis=0)[1]
    np.testing.assert_allclose(np.array(seen["seen"]) / 0.75, row / row.max(), atol=0.05)
    assert seen["hint"].startswith("“cat” looked at")
    page.run("await (await ready)(' ').catch(() => 0)")
    status = page.run("return document.getElementById('status').textContent")
    assert status == "There is no word in it."


@pytest.mark.slow
@pytest.mark.parametrize("pooling", sampled(["mean", "cls"]))
def test_page_labels_texts(opened, pooling):
    train = [ka.data.Text("a joy to watch", "good"), ka.data.Text("a real bore", "bad")] * 20
    task = ka.tasks.TextClassifier.from_data(train, pooling=pooling, **SIZE)
    task.fit(train, epochs=4, batch_size=8, learning_rate=0.02, verbose=False)
    page = opened(task)
    for text in ["a joy", "what a bore, really", MIXED]:
        (expected,) = task.predict([text])
        results = page.ask(text)
        assert results["label"] == expected.label
        assert results["probability"] == pytest.approx(expected.probability, abs=0.02)
    assert page.run("return document.querySelectorAll('#shares tr').length") == 2


@pytest.mark.slow
def test_texts_may_have_any_number_of_labels(opened):
    train = [
        ka.data.MultiLabelText("a joy and a surprise", ("joy", "surprise")),
        ka.data.MultiLabelText("a joy to watch", ("joy",)),
        ka.data.MultiLabelText("a film of two hours", ()),
    ] * 16
    task = ka.tasks.MultiLabelClassifier.from_data(train, **SIZE)
    task.fit(train, train, epochs=6, batch_size=8, learning_rate=0.02, verbose=False)
    page = opened(task)
    for text in ["what a surprise, a joy", "a joy", "two hours"]:
        (expected,) = task.predict([text])
        results = page.ask(text)
        assert [one["label"] for one in results] == [one.label for one in expected]
        shares = [one["probability"] for one in results]
        np.testing.assert_allclose(shares, [one.probability for one in expected], atol=0.02)


@pytest.mark.slow
def test_page_classifies_drawn_digits(opened):
    task = ka.tasks.from_preset("digits-vit")
    page = opened(task)
    pixels = sources.load_digits().test.pixels[:40]
    expected = task.predict(list(pixels))
    for picture, expected_answer in zip(pixels, expected, strict=True):
        results = page.ask(picture.ravel().tolist())
        assert results["label"] == expected_answer.label
        assert results["probability"] == pytest.approx(expected_answer.probability, abs=0.05)
    drawn = page.run(
        """
        const canvas = document.getElementById('canvas');
        const press = key =>
            canvas.dispatchEvent(new KeyboardEvent('keydown', {key, bubbles: true}));
        document.querySelector('button').click();
        for (let k = 0; k < 6; k++) { press(' '); press('ArrowDown'); }
        await (await ready)(new Float32Array(64));  // after all that was drawn
        const {data} = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
        return {
          lit: [...data].filter((value, i) => i % 4 == 0 && value > 128).length,
          rows: document.querySelectorAll('#shares tr').length,
          told: document.getElementById('looked').getAttribute('aria-label'),
        };
        """
    )
    assert drawn["lit"] > 10 and drawn["rows"] == 3 and "of 16" in drawn["told"]


@pytest.mark.slow
def test_page_for_photographs_has_an_example_and_no_drawing_board(opened, tmp_path):
    task = ka.tasks.ImageClassifier(
        ka.models.vision_transformer((8, 8), 2, num_channels=3, patch_size=4, **SIZE),
        ka.data.ImagePreprocessor(["cat", "dog"], 8, channels=3),
    )
    pixels = np.random.default_rng(0).integers(256, size=(8, 8, 3)).astype("uint8")
    keras.utils.save_img(tmp_path / "a.png", pixels, scale=False)
    (expected,) = task.predict([pixels])
    page = opened(task, example=str(tmp_path / "a.png"))
    shown = page.run(
        """
        await ready;
        const parts = [...document.querySelectorAll('#page input, #page canvas, #page button')];
        return {
          parts: parts.map(part => part.type ?? part.id),
          row: document.querySelector('#shares tr').textContent,
        };
        """
    )
    assert shown["parts"] == ["file", "canvas", "looked"]
    label, share = shown["row"].removesuffix(" %")[:3], shown["row"].removesuffix(" %")[3:]
    assert label == expected.label
    assert float(share) == pytest.approx(100 * expected.probability, abs=2)


def make_pairs(count):
    draw = np.random.default_rng(0)
    rows = [draw.integers(5, size=draw.integers(1, 5)) for _ in range(count)]
    texts = ((" ".join(GERMAN[k] for k in row), " ".join(ENGLISH[k] for k in row)) for row in rows)
    return [ka.data.Pair(*pair) for pair in texts]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("builder", "options"),
    [
        ("seq2seq_transformer", {"vocabulary_size": 24, "beam": 3, "num_heads": 2}),
        pytest.param(
            "seq2seq_recurrent", {"tokens": "characters", "beam": 1}, marks=pytest.mark.sweep
        ),
    ],
)
def test_page_writes_texts_and_shows_their_alignment(opened, builder, options):
    pairs = make_pairs(300)
    task = ka.tasks.Seq2SeqLM.from_data(
        pairs, builder=builder, num_layers=1, hidden_dim=32, dropout=0.0, max_length=24, **options
    )
    task.fit(pairs, epochs=4, learning_rate=0.01, max_tokens=256, verbose=False)
    page = opened(task, example="eins zwei", quantization=None)
    texts = ["eins", "drei vier null", "vier  eins zwei drei", "zwei ½ fünf"]
    assert [page.ask(text) for text in texts] == task.predict(texts)
    seen = page.run(
        """
        await (await ready)('drei vier');
        document.querySelectorAll('#tokens button')[0].click();
        const keys = [...document.querySelectorAll('#keys span')];
        return keys.map(key => Number(key.style.getPropertyValue('--seen')));
        """
    )
    assert max(seen) == pytest.approx(0.75) and len(seen) == len(
        task.preprocessor(["drei vier"])[0]
    )


@pytest.mark.slow
def test_page_continues_texts(opened):
    text = "the cat sat on the mat.\nthe dog ran to the tree.\n" * 30
    task = ka.tasks.CausalLM.from_data(text, max_length=32, **SIZE)
    task.fit(text, epochs=2, steps=30, batch_size=8, learning_rate=0.01, verbose=False)
    page = opened(task, example="the", quantization=None)
    for beginning in ["the c", "the dog ran\nthe"]:
        (expected,) = task.predict([beginning], max_new_tokens=12, temperature=0)
        assert page.ask(beginning, 12, 0) == expected
    seen = page.run(
        """
        const tokens = [...document.querySelectorAll('#tokens button')];
        tokens.at(-1).click();
        const seen = tokens.map(token => Number(token.style.getPropertyValue('--seen')));
        return [tokens.length, Math.max(...seen)];
        """
    )
    assert seen[0] == len("the dog ran\nthe") + 12 and seen[1] == pytest.approx(0.75)
    drawn = page.ask("the", 20, 1.0)
    assert drawn.startswith("the") and len(drawn) > 3


@pytest.mark.slow
def test_page_splits_like_sentencepiece(opened):
    """Check also letters and signs that the vocabulary lacks."""
    pairs = make_pairs(200) + [ka.data.Pair("Größe, naïve Äpfel!", "size, naive apples!")] * 5
    task = ka.tasks.Seq2SeqLM.from_data(
        pairs, vocabulary_size=41, beam=1, num_layers=1, num_heads=2, hidden_dim=8, max_length=24
    )
    page = opened(task, example="eins")
    draw = np.random.default_rng(1)
    letters = "einszwdrvü Ä½ﬁ,!?中\u3000  ½é\t"
    texts = ["".join(draw.choice(list(letters), size=draw.integers(1, 20))) for _ in range(200)]
    results = page.run(
        """
        const {makeTokenizer} = await import('/page/text.js');
        const about = await (await fetch('/page/page.json')).json();
        const {encode, decode} = makeTokenizer(about.source);
        return given.map(text => [encode(text), decode(encode(text))]);
        """,
        texts,
    )
    expected = task.preprocessor.source.encode(texts)
    assert [ids for ids, _ in results] == [row.tolist() for row in expected]
    assert [text for _, text in results] == task.preprocessor.source.decode(expected)


@pytest.mark.slow
def test_page_of_the_tagger_preset(opened):
    task = ka.tasks.from_preset("pos-tagger-en-ewt")
    page = opened(task)
    texts = ["The old house on the hill creaked.", "Ask Dr. Miller about it!", "so what ?"]
    for text in texts:
        expected = [(t.token, t.tag) for t in task.predict([text])[0]]
        assert [(one["token"], one["tag"]) for one in page.ask(text)] == expected


@pytest.mark.slow
def test_commands_write_and_serve_a_page(run, tmp_path, monkeypatch, tagger):
    need_browser()
    monkeypatch.setenv(litert_js.FOLDER, str(session.MODULES))
    code, out, err = run("web", tagger, "--output", tmp_path / "page", "--title", "My tagger")
    assert (code, err) == (0, "") and "index.html" in out
    entries = json.loads((tmp_path / "page" / "page.json").read_text("utf-8"))
    assert entries["title"] == "My tagger" and entries["kind"] == "sequence_labeler"
    names = {path.name for path in (tmp_path / "page").iterdir()}
    assert names == {path.name for path in STATIC.iterdir()} | {
        "litert", "model.tflite", "page.json"
    }  # fmt: skip
    assert (tmp_path / "page" / "litert" / "core" / "APACHE-2.0.txt").is_file()
    code, _, err = run("web", tagger, "--output", tmp_path / "page")
    assert code == 2 and "already contains other files" in err
    served = []
    monkeypatch.setattr("keras_attention.cli.web.serve_folder", lambda *a, **o: served.append(a))
    assert run("serve", tagger, "--port", 0)[0] == 0 and len(served) == 1


def test_page_refuses_unsupported_tasks_and_missing_litert_js(tmp_path, monkeypatch):
    text = "the cat sat. " * 30
    masked = ka.tasks.MaskedLM.from_data(text, tokens="characters", max_length=8, **SIZE)
    with pytest.raises(ValueError, match="No page exists for tasks of masked_language_model"):
        write_page(masked, tmp_path / "page")
    (tmp_path / "modules").mkdir()
    monkeypatch.setenv(litert_js.FOLDER, str(tmp_path / "modules"))
    with pytest.raises(ValueError, match="has no @litertjs/core"):
        litert_js.find_packages()
    monkeypatch.delenv(litert_js.FOLDER)
    monkeypatch.setenv("KERAS_ATTENTION_CACHE", str(tmp_path))
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ValueError, match="npm, which downloads LiteRT.js"):
        litert_js.find_packages()


def test_cached_packages_are_not_downloaded_again(tmp_path, monkeypatch):
    monkeypatch.delenv(litert_js.FOLDER, raising=False)
    monkeypatch.setenv("KERAS_ATTENTION_CACHE", str(tmp_path))
    monkeypatch.setenv("PATH", "")  # no npm
    version = litert_js.PACKAGES["@litertjs/core"]
    place = tmp_path / "keras_attention" / "litertjs" / version
    place.mkdir(parents=True)
    assert litert_js.find_packages() == place / "node_modules"


def test_model_with_attention_outputs_has_the_same_logits():
    from keras_attention.web.page import add_attention, find_layer

    model = ka.models.text_classifier(20, 3, num_layers=2, num_heads=2, hidden_dim=8)
    ids = np.array([[5, 7, 9, 0]])
    path, shape = find_layer(model, ids, lambda maps: list(maps)[0])
    outputs = add_attention(model, path)(ids)
    np.testing.assert_allclose(outputs["logits"], model(ids), atol=1e-6)
    with ka.visualization.record_attention(model) as maps:
        model(ids)
    np.testing.assert_allclose(outputs["attention"], maps[path], atol=1e-6)
    assert tuple(outputs["attention"].shape) == shape


def test_every_script_is_imported_by_the_page():
    """Check that a script or the page imports every script."""
    scripts = {path.name: path.read_text() for path in STATIC.glob("*.js")}
    page = (STATIC / "index.html").read_text()
    for name in scripts:
        assert f"./{name}'" in "".join(scripts.values()) or f'"{name}"' in page
    assert all(f"{kind}:" in scripts["app.js"] for kind in KINDS)
