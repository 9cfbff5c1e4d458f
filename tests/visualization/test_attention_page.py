"""`attention_page`: the numbers in the page, what it escapes, and the page in a browser."""

import json
import re
import string
import subprocess

import numpy as np
import pytest

import keras_attention as ka
from keras_attention.visualization.attention_page import PAGE
from tests.browser.session import find_chromium
from tests.visualization.test_rollout import draw_maps

DIGITS = string.ascii_uppercase + string.ascii_lowercase + string.digits + "+/"
NASTY = ["<script>alert(1)</script>", "</script><!--", '"&lt;{{data}}', "\u2028\n", ""]


def read_page(page):
    """Return the content of a page, a dict."""
    (text,) = re.findall(r'<script type="application/json" id="data">(.*)</script>', page)
    return json.loads(text)


def read_weights(layer, shape):
    """Return the weights of a layer in a page, from their definition: two digits, up to `top`."""
    values = np.array([DIGITS.index(digit) for digit in layer["digits"]]).reshape(-1, 2)
    return layer["top"] * (values @ [64, 1]).reshape(shape) / 4095


def name_maps(*names, shape=(1, 4, 5, 5)):
    return dict(zip(names, draw_maps(len(names), shape), strict=True))


def make_pair():
    """Return maps of an encoder-decoder, from 5 source tokens to 3 target tokens."""
    return {
        **name_maps("encoder_block_0/attention"),
        **name_maps("decoder_block_0/attention", shape=(1, 2, 3, 3)),
        **name_maps("decoder_block_0/cross_attention", shape=(1, 2, 3, 5)),
    }


def test_numbers_equal_the_maps(tmp_path):
    maps = name_maps("one", "two")
    maps["two"] = maps["two"] * np.array([1, 2, 0, 3])[:, None, None]  # other normalizers
    page = ka.visualization.attention_page(maps, list("abcde"), path=tmp_path / "new" / "page.html")
    assert (tmp_path / "new" / "page.html").read_text("utf-8") == page
    content = read_page(page)
    assert content["sequences"] == [{"names": list("abcde")}] and content["relevance"] == []
    for layer, (path, weights) in zip(content["layers"], maps.items(), strict=True):
        read = read_weights(layer, weights.shape)
        assert (layer["path"], layer["heads"], layer["residual"]) == (path, 4, 1)
        assert abs(read - weights).max() <= weights.max() / 8190 + 1e-12
        np.testing.assert_allclose(read.max(), weights.max())


def test_padding_and_negative_weights_are_left_out():
    maps = name_maps("one") | {"pooling": np.array([[[[0.5, -0.2, 0.7, 9.0, 9.0]]]])}
    content = read_page(ka.visualization.attention_page(maps, list("abc"), ["joy"]))
    first, pooling = content["layers"]
    assert len(first["digits"]) == 2 * 4 * 3 * 3 and pooling["residual"] == 0
    np.testing.assert_allclose(read_weights(pooling, (3,)), [0.5, 0, 0.7], atol=1e-4)
    assert [each["names"] for each in content["sequences"]] == [["a", "b", "c"], ["joy"]]


def test_tokens_and_titles_are_escaped():
    score = (NASTY[0], np.ones(5))
    page = ka.visualization.attention_page(
        name_maps("<script>"), NASTY, NASTY, relevance=[score], title=NASTY[0]
    )
    assert page.count("<script") == PAGE.read_text("utf-8").count("<script") == 2
    assert "<title>&lt;script&gt;alert(1)&lt;/script&gt;</title>" in page
    content = read_page(page)
    assert content["sequences"] == [{"names": NASTY, "ends": NASTY}]
    assert content["title"] == content["relevance"][0]["name"] == NASTY[0]


def test_pages_load_nothing_and_stay_small():
    maps = name_maps(*"abcdef", shape=(1, 8, 128, 128))
    page = ka.visualization.attention_page(maps, ["unforgettably"] * 128)
    assert len(page) < 1.65e6 and "default-src 'none'" in page
    assert (
        re.findall(r"(?:https?:)?//\w+\.|@import|<link (?!rel=\"icon\" href=\"data:,\")", page)
        == []
    )


def test_images_have_patches_after_other_tokens():
    picture = np.arange(8 * 8 * 3, dtype="uint8").reshape(8, 8, 3)
    maps = name_maps("block", shape=(1, 2, 17, 17))
    (sequence,) = read_page(ka.visualization.attention_page(maps, image=picture))["sequences"]
    assert sequence["grid"] == [4, 4] and sequence["names"][:2] == ["token 0", "row 0, column 0"]
    assert sequence["names"][-1] == "row 3, column 3" and sequence["picture"]["width"] == 8
    with pytest.raises(ValueError, match=r"grid=\(5, 4\) has 20 patches, but there are 17 inputs"):
        ka.visualization.attention_page(maps, image=picture, grid=(5, 4))
    with pytest.raises(ValueError, match="tokens are for text, but an image is given. Leave out"):
        ka.visualization.attention_page(maps, ["a"], image=picture)


def test_errors_name_what_does_not_fit(tmp_path):
    maps = name_maps("one")
    with pytest.raises(ValueError, match="6 tokens for weights over 5 positions"):
        ka.visualization.attention_page(maps, list("abcdef"))
    with pytest.raises(ValueError, match="outputs='abcde' is one string. Pass a list of tokens"):
        ka.visualization.attention_page(maps, list("abcde"), "abcde")
    with pytest.raises(ValueError, match="weights of 2 examples, but a page shows one. Run the"):
        ka.visualization.attention_page(name_maps("one", shape=(2, 4, 5, 5)))
    with pytest.raises(ValueError, match=r"attention_page got one \(5, 5\): expected weights \(B,"):
        ka.visualization.attention_page({"one": np.eye(5)})
    with pytest.raises(ValueError, match=r"scores \(4,\) for 'joy': expected \(5,\), a score for"):
        ka.visualization.attention_page(maps, relevance=[("joy", np.ones(4))])
    with pytest.raises(ValueError, match="is a folder: expected a file, such as"):
        ka.visualization.attention_page(maps, path=tmp_path)
    assert list(tmp_path.iterdir()) == []


def run_in_browser(page, program, tmp_path):
    """Return the JSON that the body of a function in the page returns."""
    if not find_chromium():
        pytest.skip("No browser to test with.")
    script = f"<script>document.body.textContent = JSON.stringify((() => {{{program}}})())</script>"
    path = tmp_path / "run.html"
    path.write_text(page.replace("</body>", script + "</body>"), "utf-8")
    options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
    profile = f"--user-data-dir={tmp_path / 'profile'}"
    done = subprocess.run(
        [find_chromium(), *options, profile, "--dump-dom", path.as_uri()],
        capture_output=True,
        text=True,
        timeout=240,
    )
    (body,) = re.findall(r"<body>(.*)</body>", done.stdout, re.DOTALL)
    return json.loads(body.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["encoder", "pooling", "pair"])
def test_the_browser_follows_attention_like_rollout(kind, tmp_path):
    maps = make_pair() if kind == "pair" else name_maps("one", "two", "three")
    if kind == "pooling":
        maps |= name_maps("pooling", shape=(1, 1, 1, 5))
    page = ka.visualization.attention_page(maps)
    program = """
        const last = layers.at(-1).queries;
        const follow = () => sequences[last].names.map((_, i) =>
            trace(layers.length, last, i)[0].flatMap(row => [...row]));
        const select = document.querySelectorAll('select')[0], mean = follow();
        select.value = '1';
        select.dispatchEvent(new Event('change'));
        return [mean, follow()];
    """
    mean, one = np.array(run_in_browser(page, program, tmp_path))
    (expected,) = ka.visualization.rollout(maps)
    inputs = expected.shape[1]
    np.testing.assert_allclose(mean[:, :inputs], expected, atol=1e-3)
    np.testing.assert_allclose(mean.sum(axis=1), 1)
    first = next(iter(maps))
    (expected,) = ka.visualization.rollout(maps | {first: maps[first][:, 1:2]})
    np.testing.assert_allclose(one[:, :inputs], expected, atol=1e-3)


@pytest.mark.slow
def test_the_page_works_by_mouse_touch_and_keyboard(tmp_path):
    maps = {"one": np.eye(5)[None, None, [1, 0, 2, 3, 4]]}  # token 0 looks at token 1
    scores = [("first", np.eye(5)[2]), ("second", np.eye(5)[3])]
    page = ka.visualization.attention_page(maps, NASTY, relevance=scores, title=NASTY[0])
    program = """
        const cell = cells[1][0][0], key = name => document.activeElement.dispatchEvent(
            new KeyboardEvent('keydown', {key: name, bubbles: true}));
        const seen = [], note = () => seen.push(find('status').textContent);
        cell.dispatchEvent(new PointerEvent('pointerover', {bubbles: true, pointerType: 'mouse'}));
        note();
        flow.dispatchEvent(new PointerEvent('pointerleave'));
        note();
        cell.click();
        cell.focus();
        key('ArrowDown');
        note();
        key('ArrowLeft');
        note();
        key('Escape');
        note();
        const reason = find('reason').textContent;
        find('outputs').children[1].click();
        return {seen, reason, later: find('reason').textContent,
            texts: cells[0][0].map(each => each.textContent), scripts: document.scripts.length,
            stops: flow.querySelectorAll('button[tabindex="0"]').length};
    """
    answer = run_in_browser(page, program, tmp_path)
    hovered, left, below, before, ended = answer["seen"]
    one = f"“{NASTY[1]}” 50.0 %"
    assert hovered.startswith(f"“{NASTY[0]}” after one: from ") and one in hovered
    assert hovered.endswith(f"In this layer it looked at “{NASTY[1]}” 100.0 %.")
    assert left == ended == "" and below.startswith(f"“{NASTY[1]}” after one")
    assert before == f"“{NASTY[1]}” is an input." and answer["stops"] == 1
    assert answer["reason"] == f"What raised “first”: “{NASTY[2]}” 100.0 %."
    assert answer["later"].startswith("What raised “second”")
    assert answer["texts"] == [*NASTY[:3], "\u2028↵", "␣"] and answer["scripts"] == 3
