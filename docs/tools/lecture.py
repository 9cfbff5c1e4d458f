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
NOTES = tomllib.loads((SCRIPTS / "notes.toml").read_text("utf-8"))
TITLES = {"Sqrt d": "The square root of d", "Cnn is attention": "A CNN is attention"}
IMPORTS = {" keras.": "import keras", "np.": "import numpy as np"}
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

## Words and symbols

- A **token** is a unit of the input, such as a word or an image patch. A layer reads a vector x for
  each token. T is the number of tokens, D the size of x.
- In **attention**, each token has a query q, a key k and a value v: vectors of H numbers, made from
  its x by three dense layers. The output for token i is the sum of all values vⱼ, weighted by
  softmax of the scores qᵢ · kⱼ / √H over j. A **head** is one such computation. A layer can have
  several heads, and the size of all heads together is its width.
- A **mask** says which tokens j a token i sees. A **position code** tells a layer where a token is.
- An **encoder** turns a sequence into vectors. A **decoder** writes a sequence, one token after
  another, until it writes the token END. It sees the encoder's output by **cross-attention**:
  queries from the decoder, keys and values from the encoder. Both together are **seq2seq**.
- A **seed** gives a model its random initial weights. Where two models are compared, each is
  trained from three seeds. Tables show the mean and, in parentheses, the lowest and the highest
  value. Times are measured in several rounds, and shown in the same way.
- A claim **holds in part** if one part of it holds and another does not.
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

## 用語與符號

- **詞元**是輸入的單位，例如一個詞或一塊圖片。每個詞元有一個向量 x；T 是詞元的個數，D 是 x 的大小。
- 在**注意力**中，每個詞元由 x 經三個全連接層得到三個向量，各含 H 個數：查詢 q、鍵 k、值 v。
  詞元 i 的輸出是所有值 vⱼ 的加權和，權重是分數 qᵢ · kⱼ / √H 對 j 的 softmax。
  一次這樣的計算稱為一個**頭**；一層可以有多個頭，所有頭的總大小是它的寬度。
- **遮罩**決定詞元 i 看得到哪些詞元 j。**位置編碼**告訴模型詞元在哪裡。
- **編碼器**把序列變成向量；**解碼器**逐個寫出詞元，直到寫出 END。
  解碼器以**交叉注意力**看編碼器的輸出：查詢來自解碼器，鍵與值來自編碼器。兩者合稱 **seq2seq**。
- **種子**決定模型隨機的初始權重。比較兩個模型時，每個模型都從三個種子訓練；
  表中是平均值，括號內是最低與最高值。時間量測數回合，以同樣方式表示。
- 主張**部分成立**：其中一部分成立，另一部分不成立。
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
    fields, notes = read_fields(script), NOTES[name]
    more = "".join(f"\n\n{wrap(text)}" for text in notes.get("more", "").split("\n\n") if text)
    code = "\n".join(text for sign, text in IMPORTS.items() if sign in notes["code"])
    code += "\n\nimport keras_attention as ka\n\n" + notes["code"].strip()
    tip = quote_settings(fields["Try this"], script)
    if ("part" in notes) != (numbers["verdict"] == "holds in part"):
        raise ValueError(
            f"notes.toml: [{name}] must have `part` if the claim holds in part, and only then. "
            f"It {numbers['verdict']}."
        )
    finding = f"{numbers['finding']} {notes.get('part', '').strip()}"
    names = list_scripts()
    following = names[names.index(name) + 1 :][:1]
    to_next = "".join(f"- Next in the course: [{title(n)}]({n}.md)\n" for n in following)
    return f"""\
# {title(name)}

{wrap(f"**Claim.** {fields['claim']}")}

```text
{wrap(fields["Equation"])}
```

{fields["text"]}{more}

![{fields["Caption"]}]({name}.png)

{wrap(f"*{fields['Caption']}*")}

{write_table(numbers["rows"])}
{explain_spread(numbers["rows"])}
{wrap(f"**The claim {numbers['verdict']}.** {finding}")}

Data: {numbers["data"]}. Measured on {numbers["machine"]}.

{wrap(f"**Refuted if** {fields['Refuted if']}")}

**Classes.** {NAME.sub(link, fields["Classes"])}

```python
{code.strip()}
```

**Papers.** {fields["Papers"]}

{wrap(f"**Try this.** {tip[0].upper() + tip[1:]}")}

## Where to go next

- Run it: `keras-attention lecture {name}` ([script](../../examples/lecture/{name}.py))
{to_next}- [All claims, words and symbols](index.md)
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
    has_spread = any(re.search(r"\(.* to ", str(value)) for row in rows for value in row.values())
    text = "\nThe first number is a mean. In parentheses: the lowest and the highest value.\n"
    return text if has_spread else ""


def quote_settings(text, script):
    """Return a text that says to set `NAME = ...`, with the present value in the script."""
    values = {}
    for node in ast.parse(script.read_text("utf-8")).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple | ast.Name):
            names = getattr(node.targets[0], "elts", node.targets)
            parts = node.value.elts if len(names) > 1 else [node.value]
            values |= {x.id: part for x, part in zip(names, parts, strict=True)}

    def quote(match):
        now = values.get(match[1])
        literal = now and not any(isinstance(node, ast.Name) for node in ast.walk(now))
        return f"{match[0]} (now {ast.unparse(now)})" if literal else match[0]

    return re.sub(r"`(\w+) = [^`]*`", quote, text)


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
