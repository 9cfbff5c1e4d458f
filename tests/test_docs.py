"""The pages of docs/: their code runs, generated pages are up to date, and the site builds."""

import ast
import re
import runpy

import keras
import pytest

import keras_attention as ka
from keras_attention.tasks.registry import TASKS, get_task_class
from tests.conftest import ROOT
from tests.tables import assert_lists, list_builders

DOCS = ROOT / "docs"
BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
PAGES = {
    page.relative_to(DOCS).as_posix(): page.read_text()
    for page in sorted(DOCS.rglob("*.md"))
    if "notebooks" not in page.parts
}
# Pages that train, export or generate for longer than a few seconds.
SLOW = {
    "guides/build-a-model.md",
    "guides/fine-tune.md",
    "guides/generate.md",
    "guides/see-attention.md",
    "guides/several-devices-other-backends.md",
    "guides/write-your-own.md",
    "tutorial.md",
}
SLOW |= {page for page in PAGES if page.startswith(("lecture/", "on-device/", "own-data/"))}
# Packages without which the code of a page is not run.
PACKAGES = {
    "on-device/litert-lm.md": ("litert_lm", "litert_lm_builder"),
    "on-device/onnx.md": ("onnxruntime", "openvino", "tf2onnx"),
}
WITH_CODE = [
    pytest.param(page, marks=[pytest.mark.slow] if page in SLOW else [])
    for page, text in PAGES.items()
    if BLOCK.search(text)
]
TOOLS = DOCS / "tools"
LONGEST_LINE, LONGEST_PAGE, LONGEST_CELL = 140, 250, 140
LINK = re.compile(r"\[[^]]*\]\([^)]*\)")


def run_tool(name):
    """Run a file of docs/tools, which may import its neighbours, and return its names."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(TOOLS)
        return runpy.run_path(str(TOOLS / name))


def blocks_of(text):
    """Return the Python blocks of a page, below empty lines so that errors name the right line."""
    return ["\n" * text[: match.start(1)].count("\n") + match[1] for match in BLOCK.finditer(text)]


@pytest.mark.parametrize("page", WITH_CODE)
def test_code_runs(page, tmp_path, monkeypatch):
    """Run the blocks of a page from top to bottom, in one namespace."""
    for package in PACKAGES.get(page, ()):
        pytest.importorskip(package, reason=f"{page} needs {package}")
    monkeypatch.chdir(tmp_path)
    classes, names = dict(keras.saving.get_custom_objects()), {"__name__": "__main__"}
    try:
        for code in blocks_of(PAGES[page]):
            exec(compile(code, page, "exec"), names)
    finally:
        forget_classes_of_the_page(classes)


def forget_classes_of_the_page(classes):
    """Remove the registered classes that a page defines. Classes of the package stay."""
    registered = keras.saving.get_custom_objects()
    for name, made in list(registered.items()):
        if name not in classes and not made.__module__.startswith("keras_attention."):
            del registered[name]


def find_sums_of_layers(code):
    """Yield the lines that add the output of a layer by `+`, which drops its mask."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            for side in (node.left, node.right):
                if isinstance(side, ast.Call) and isinstance(side.func, ast.Call):
                    yield node.lineno


def test_sums_in_documents_keep_the_mask():
    """`keras.layers.Add` hands the mask of padding on, and `+` does not."""
    code = {name: "\n".join(blocks_of(text)) for name, text in PAGES.items()}
    code |= {path.name: path.read_text("utf-8") for path in (ROOT / "examples").glob("*.py")}
    assert list(find_sums_of_layers("y = x + Layer(2)(x)")) == [1]
    sums = {name: list(find_sums_of_layers(text)) for name, text in code.items()}
    assert not {name: lines for name, lines in sums.items() if lines}


def test_slow_pages_exist():
    assert set(PAGES) >= SLOW


def test_mechanisms_are_as_generated():
    tool = run_tool("mechanisms.py")
    assert PAGES["mechanisms.md"] == tool["write_page"](), "run: make mechanisms"


def test_every_mechanism_is_in_the_table_with_a_test():
    row = r"^\| \[`(\w+)`\]\(reference/\S+\) \|.*\| \[test\]\(\.\./(tests/[\w/]+\.py)\) \|$"
    listed = re.findall(row, PAGES["mechanisms.md"], re.MULTILINE)
    expected = {*list_builders(), "TransformerEncoder", "TransformerDecoder"}
    expected |= {"Characters", "ConformerEncoder", "RecurrentStack"}
    expected |= {"ImageEmbedding", "SpeechEmbedding", "TextEmbedding"}
    for family in (ka.scores, ka.normalizers, ka.masks, ka.positions, ka.positions.scalings):
        expected |= {cls.__name__ for cls in family.NAMES.values()}
    expected |= {cls.__name__ for cls in ka.blocks.residuals.NAMES.values()}
    for room in (ka.attention, ka.blocks, ka.recurrent):
        expected |= {name for name in room.__all__ if hasattr(ka.layers, name)}
    expected -= {"AttentionLayer", "HeadProjection", "ResidualWeight"}  # inside of the others
    assert_lists("docs/mechanisms.md", [name for name, _ in listed], expected)
    assert len(listed) == len(expected)
    assert not [test for _, test in listed if not (ROOT / test).exists()]


def test_every_attention_layer_is_in_its_guide():
    names = set(re.findall(r"^\| `(\w+)` \|", PAGES["guides/attention-layer.md"], re.MULTILINE))
    layers = {name for name in ka.attention.__all__ if name.endswith("Attention")}
    table = '"Other layers" of docs/guides/attention-layer.md'
    assert_lists(table, names & layers, layers - {"MultiHeadAttention"})


def test_every_builder_is_in_the_guide():
    rows = re.findall(r"^\| (`\w+`.*?) \|", PAGES["guides/build-a-model.md"], re.MULTILINE)
    listed = set(re.findall(r"`(\w+)`", " ".join(rows)))
    assert_lists("the table of docs/guides/build-a-model.md", listed, list_builders())


def test_every_task_is_in_the_tables_of_pages():
    for page, names in {
        "own-data/files.md": {get_task_class(name).__name__ for name in TASKS},
        "guides/command-line.md": set(TASKS),
    }.items():
        rows = " ".join(re.findall(r"^\|.*", PAGES[page], re.MULTILINE))
        listed = names & set(re.findall(r"`(\w+)`", rows))
        assert_lists(f"a table of tasks in docs/{page}", listed, names)


def test_the_test_of_a_mechanism_names_it():
    tool = run_tool("mechanisms.py")
    for room in tool["ROOMS"]:
        for name, mechanism, string in tool["list_mechanisms"](room):
            if name not in tool["TESTED_IN_MODELS"]:
                text = tool["find_test"](room, mechanism, string).read_text()
                words = name, string, re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
                assert any(word and word in text for word in words), f"{room}.{name}: no test"


def test_every_paper_that_is_cited_has_an_address():
    tool = run_tool("mechanisms.py")
    cited = set()
    for room in tool["ROOMS"]:
        for _, mechanism, _ in tool["list_mechanisms"](room):
            cited |= set(tool["list_citations"](mechanism))
    assert len(cited) > 70
    assert_lists("docs/tools/papers.toml", tool["PAPERS"], cited)


def test_every_room_has_a_page_of_reference():
    pages = {page.stem for page in (DOCS / "reference").glob("*.md")}
    assert_lists("docs/reference/ and mkdocs.yml", pages, set(ka.__all__) - {"Part", "layers"})
    navigation = (ROOT / "mkdocs.yml").read_text()
    assert not [page for page in pages if f"reference/{page}.md" not in navigation]


@pytest.mark.parametrize("room", sorted(set(ka.__all__) - {"Part", "layers"}))
def test_every_public_name_is_in_a_family(room):
    tool = run_tool("families.py")
    names = [name for group in tool["group_names"](room).values() for name in group]
    assert sorted(names) == sorted(set(getattr(ka, room).__all__) - tool["WITHOUT_ENTRY"])
    assert all(f"[`{name}`]" in tool["write_overview"](room) for name in names)


@pytest.mark.parametrize("page", sorted(PAGES))
def test_pages_lines_and_cells_are_short(page):
    """Links do not count."""
    lines = [LINK.sub("", line) for line in PAGES[page].splitlines()]
    assert len(lines) <= LONGEST_PAGE
    assert not [line for line in lines if len(line) > LONGEST_LINE]
    rows = [line for line in lines if line.startswith("|")]
    assert not [row for row in rows if max(map(len, row.split("|"))) > LONGEST_CELL]


def test_every_trained_model_is_in_the_table_with_the_numbers_of_its_card():
    name, card = r"^\| \[([\w-]+)\]", r"\(\.\./saved_models/\1/README\.md\)"
    row = rf"{name}{card} \| .* \| ([\d,]+) \| ([\d.]+) [^|]+ \|$"
    rows = {match[1]: match for match in re.finditer(row, PAGES["models.md"], re.MULTILINE)}
    cards = {path.parent.name: path for path in ROOT.glob("saved_models/*/README.md")}
    assert_lists("the table of docs/models.md", rows, cards)
    for name, card in cards.items():
        text, (_, parameters, score) = card.read_text(), rows[name].groups()
        assert f"{parameters} parameters" in text
        tested = re.findall(r"^\| test \| keras \| \w+ \| ([\d.]+)", text, re.MULTILINE)
        assert any(abs(float(x) - float(score)) < 0.06 for x in tested), name


@pytest.mark.parametrize("page", sorted(PAGES))
def test_links_lead_somewhere(page):
    """Check links as they are followed in the repository, where pages are plain files."""
    prose = re.sub(r"```.*?```", "", PAGES[page], flags=re.DOTALL)
    links = [link for link in re.findall(r"\]\(([^)#]+)", prose) if "://" not in link]
    assert not [link for link in links if not ((DOCS / page).parent / link).exists()]


def test_a_name_that_the_reference_hides_fails_the_build():
    tool = run_tool("site_checks.py")
    names = set(ka.masks.__all__) - {"NAMES", "Window"}
    page = "".join(f'<h2 id="keras_attention.masks.{name}">' for name in names)
    assert tool["find_hidden_names"]("masks", page) == ["Window"]
