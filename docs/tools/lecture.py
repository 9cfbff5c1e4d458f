"""Write docs/lecture: a page for each script of examples/lecture, and the index of the course.

    make lecture                                 # run all scripts, then write all pages
    python docs/tools/lecture.py                 # write the pages from the numbers that are there
    python docs/tools/lecture.py --run heads     # run one script, then write the pages

A script writes its figure and its numbers (JSON) into docs/lecture. The page is made of the
docstring of the script and these numbers. The order of the course is in course.toml.
"""

import argparse
import ast
import json
import pathlib
import re
import subprocess
import sys
import textwrap
import tomllib

from families import get_anchor

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = ROOT / "docs" / "lecture"
SCRIPTS = ROOT / "examples" / "lecture"
COURSE = tomllib.loads((SCRIPTS / "course.toml").read_text("utf-8"))["chapter"]
TITLES = {"Sqrt d": "The square root of d", "Cnn is attention": "A CNN is attention"}
NAME = re.compile(r"`ka\.(\w+)\.(\w+)`")

FIELDS = ("Equation", "Refuted if", "Classes", "Papers", "Caption", "Try this")

INDEX = {
    "index.md": {
        "language": "en",
        "column": 0,
        "head": """\
# The lecture

Every claim of a course on attention and the Transformer, measured. Each script trains or computes
for at most two minutes on two cores. It prints a table, draws a figure, and says whether the claim
holds. `keras-attention lecture` lists the scripts, and `keras-attention lecture forgetting` runs
one. [這一頁的中文版](index.zh-TW.md)

On all pages, each token has a query q, a key k and a value v: vectors of H numbers, made by three
dense layers. The output for token i is the sum of all values vⱼ, weighted by softmax of the scores
qᵢ · kⱼ / √H over j. A head is one such computation. A layer can have several heads.
""",
        "columns": "| concept | name | measured or explained in |",
        "claims": ("## The claims", "| page | claim | result |"),
        "verdicts": ("holds", "holds in part", "does not hold"),
        "next": "## Where to go next\n\n"
        "- [Five lessons in a notebook](../notebooks/lecture.ipynb)\n"
        "- [Your first model](../tutorial.md)\n"
        "- [Mechanisms](../mechanisms.md), with all their papers\n",
    },
    "index.zh-TW.md": {
        "language": "zh",
        "column": 1,
        "head": """\
# 課程

注意力與 Transformer 課程中的每個主張，都實際測量。每個程式在兩個核心上最多執行兩分鐘，
印出一張表、畫出一張圖，並說明主張是否成立。`keras-attention lecture` 列出所有程式，
`keras-attention lecture forgetting` 執行其中一個。各頁內容為英文。
[English version of this page](index.md)

在所有頁面中，每個詞元有三個向量，各含 H 個數：查詢 q、鍵 k、值 v，由三個全連接層產生。
詞元 i 的輸出是所有值 vⱼ 的加權和，權重是分數 qᵢ · kⱼ / √H 對 j 的 softmax。
一次這樣的計算稱為一個頭；一層可以有多個頭。
""",
        "columns": "| 概念 | 名稱 | 測量或說明的頁面 |",
        "claims": ("## 主張", "| 頁面 | 主張（英文） | 結果 |"),
        "verdicts": ("成立", "部分成立", "不成立"),
        "next": "## 接下來\n\n- [五個主張的筆記本](../notebooks/lecture.ipynb)（英文）\n"
        "- [第一個模型](../tutorial.md)\n"
        "- [所有機制與論文](../mechanisms.md)\n",
    },
}


def read_fields(script):
    """Read the docstring of a script, without running the script.

    Args:
        script: path of the script.

    Returns:
        dict of str: `"claim"`, `"text"` (Markdown), and each of `FIELDS`.
    """
    docstring = ast.get_docstring(ast.parse(script.read_text("utf-8")))
    claim, _, *paragraphs = docstring.split("\n\n")
    parts = {"claim": claim.replace("\n", " ")}
    for name in FIELDS:
        texts = [text for text in paragraphs if text.startswith(f"{name}: ")]
        if len(texts) != 1:
            raise ValueError(
                f"{script}: {len(texts)} paragraphs of the docstring begin with '{name}: ', "
                "expected 1."
            )
        parts[name] = texts[0].removeprefix(f"{name}: ").replace("\n", " ")
        paragraphs.remove(texts[0])
    return parts | {"text": "\n\n".join(paragraphs)}


def list_scripts():
    """Return the names of all scripts, in the order of the course."""
    pages = (page for chapter in COURSE for *_, page in chapter["concepts"])
    return list(dict.fromkeys(page for page in pages if not page.endswith(".md")))


def write_page(name):
    """Return the page of a script, made of its docstring and its numbers."""
    script, numbers = SCRIPTS / f"{name}.py", read_numbers(name)
    fields = read_fields(script)
    tip = fields["Try this"]
    names = list_scripts()
    following = names[names.index(name) + 1 :][:1]
    to_next = "".join(f"- Next in the course: [{title(n)}]({n}.md)\n" for n in following)
    return f"""\
# {title(name)}

{wrap(f"**Claim.** {fields['claim']}")}

```text
{wrap(fields["Equation"])}
```

{fields["text"]}

![{fields["Caption"]}]({name}.png)

{wrap(f"*{fields['Caption']}*")}

{write_table(numbers["rows"])}
{explain_spread(numbers["rows"])}
{wrap(f"**The claim {numbers['verdict']}.** {numbers['finding']}")}

Data: {numbers["data"]}.

{wrap(f"**Refuted if** {fields['Refuted if']}")}

**Classes.** {NAME.sub(link, fields["Classes"])}

**Papers.** {fields["Papers"]}

{wrap(f"**Try this.** {tip[0].upper() + tip[1:]}")}

## Where to go next

- Run it: `keras-attention lecture {name}` ([script](../../examples/lecture/{name}.py))
{to_next}- [All claims](index.md), and what q, k, v and H are
"""


def write_index(file):
    """Return an index of the course: concepts by chapter, and the claims with their results."""
    words = INDEX[file]
    parts = [words["head"]]
    for chapter in COURSE:
        rows = [words["columns"], "| --- | --- | --- |"]
        for *concept, name, page in chapter["concepts"]:
            text = title(page.removesuffix(".md").rpartition("/")[2].replace("-", "_"))
            page = f"../{page}" if page.endswith(".md") else f"{page}.md"
            linked = NAME.sub(link, f"`{name}`")
            rows.append(f"| {concept[words['column']]} | {linked} | [{text}]({page}) |")
        parts.append(f"## {chapter[words['language']]}\n\n" + "\n".join(rows) + "\n")
    heading, columns = words["claims"]
    verdicts = dict(zip(INDEX["index.md"]["verdicts"], words["verdicts"], strict=True))
    rows = [columns, "| --- | --- | --- |"]
    for name in list_scripts():
        claim = read_fields(SCRIPTS / f"{name}.py")["claim"]
        verdict = verdicts[read_numbers(name)["verdict"]]
        rows.append(f"| [{title(name)}]({name}.md) | {claim} | {verdict} |")
    parts += [f"{heading}\n\n" + "\n".join(rows) + "\n", words["next"]]
    return "\n".join(parts)


def write_table(rows):
    """Return rows {column: value} as a Markdown table."""
    lines = [rows[0], dict.fromkeys(rows[0], "---"), *rows]
    lines = [[*rows[0]], *([str(value) for value in row.values()] for row in lines[1:])]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def explain_spread(rows):
    """Return a paragraph on the numbers in parentheses, if a table has some."""
    has_spread = any(" to " in str(value) for row in rows for value in row.values())
    return "\nIn parentheses: the lowest and the highest of the seeds.\n" if has_spread else ""


def wrap(text):
    """Return a paragraph in lines of at most 100 characters."""
    return textwrap.fill(text, 100, break_long_words=False, break_on_hyphens=False)


def title(name):
    """Return the name of a script as a title: `sqrt_d` becomes "Sqrt d"."""
    text = name.replace("_", " ").capitalize()
    return TITLES.get(text, text)


def link(match):
    """Return a link to the reference for a match of `NAME`."""
    room, name = match.groups()
    return f"[{match[0]}](../reference/{room}.md#{get_anchor(room, name)})"


def read_numbers(name):
    """Read the numbers that a script wrote: the attributes of its `Result`."""
    return json.loads((PAGES / f"{name}.json").read_text("utf-8"))


def run_script(name):
    """Run a script in a process of its own. It writes its figure and its numbers."""
    words = [sys.executable, SCRIPTS / f"{name}.py", "--output", PAGES]
    subprocess.run(words, check=True)


def write_pages():
    """Return {file: text} of all pages of docs/lecture."""
    pages = {f"{name}.md": write_page(name) for name in list_scripts()}
    return pages | {file: write_index(file) for file in INDEX}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--run", nargs="*", default=[], metavar="SCRIPT", help="scripts, or `all`")
    chosen = parser.parse_args().run
    PAGES.mkdir(exist_ok=True)
    for script_name in list_scripts() if chosen == ["all"] else chosen:
        run_script(script_name)
    for file_name, page_text in write_pages().items():
        (PAGES / file_name).write_text(page_text, "utf-8")
