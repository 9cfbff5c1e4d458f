"""Hooks of MkDocs beyond its configuration: files outside of docs/ become pages of the site.

CONTRIBUTING.md, CHANGELOG.md, tests/README.md and the cards of trained models become pages of their
own. Any other file that a page links to, such as a test or an example, is shown as it is. Links
between all of them are kept. The same pages read well as plain files in the repository. Notebooks
become pages with their outputs. The card of a trained model holds the page that runs it
(`pages.py`).
"""

import pathlib
import posixpath
import re
import sys

import nbconvert
from mkdocs.structure.files import File

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import families  # noqa: E402
import pages  # noqa: E402
import site_checks  # noqa: E402

ROOT = pages.ROOT
LINK = re.compile(r"(\]\()([^)\s#]+)(#[^)\s]*)?(\))")
CODE = re.compile(r"(^```.*?^```|^~~~.*?^~~~)", re.DOTALL | re.MULTILINE)
LANGUAGES = {".py": "python", ".toml": "toml", ".json": "json", ".html": "html", ".js": "js"}
PICTURES = (".png", ".svg")

# Pages that are made of files outside of docs/: page -> file.
PAGES = {
    "contributing.md": "CONTRIBUTING.md",
    "changelog.md": "CHANGELOG.md",
    "security.md": "SECURITY.md",
    "code-of-conduct.md": "CODE_OF_CONDUCT.md",
    "tests.md": "tests/README.md",
    "speed.md": "benchmarks/README.md",
    "scores.md": "benchmarks/scores.md",
    "laboratory-notes.md": "benchmarks/notes.md",
}
PAGES |= {
    f"models/{card.parent.name}.md": card.relative_to(ROOT).as_posix()
    for card in sorted(ROOT.glob("saved_models/*/README.md"))
}


def on_files(files, config):
    """Add the pages from outside of docs/, and every file that a page links to."""
    for notebook in sorted((ROOT / "docs" / "notebooks").glob("*.ipynb")):
        _add_notebook(notebook, files, config)
    origins = {
        f"docs/{file.src_uri}": file.src_uri
        for file in files.documentation_pages()
        if file.abs_src_path
    }
    for uri, origin in PAGES.items():
        files.append(File.generated(config, uri, abs_src_path=str(ROOT / origin)))
        origins[origin] = uri
    for origin in list(origins):
        for _, link, _, _ in LINK.findall(_remove_code((ROOT / origin).read_text())):
            target = _find_target(origin, link)
            if target is None or target in origins or target.startswith("docs/"):
                continue
            uri = target if target.endswith(PICTURES) else f"source/{target}.md"
            origins[target] = uri
            if target.endswith(PICTURES):
                files.append(File.generated(config, uri, abs_src_path=str(ROOT / target)))
            else:
                files.append(File.generated(config, uri, content=_show_source(target)))
    config.extra["origins"] = origins
    return files


def on_page_markdown(markdown, page, config, files):
    """Change the links of a page to the pages that were made of its targets."""
    if page.file.src_uri.startswith("reference/"):
        room = pathlib.PurePath(page.file.src_uri).stem
        parts = [markdown, families.write_overview(room), families.write_entries(room)]
        markdown = "\n\n".join(parts)
    origins = config.extra["origins"]
    uri = page.file.src_uri
    origin = next((o for o, u in origins.items() if u == uri), None)
    if origin is None or uri.startswith("source/"):
        return markdown

    def point(match):
        start, link, anchor, end = match.groups()
        target = _find_target(origin, link)
        if target not in origins:
            return match[0]
        link = posixpath.relpath(origins[target], posixpath.dirname(uri) or ".")
        return f"{start}{link}{anchor or ''}{end}"

    parts = CODE.split(markdown)
    parts = [p if CODE.fullmatch(p) else LINK.sub(point, _show_bars(p)) for p in parts]
    text, name = "".join(parts), pathlib.PurePath(uri)
    if name.parts[0] == "lecture":  # site.css darkens figures of this class
        text = re.sub(r"(!\[.*\]\(\w+\.png\))", r"\1{.lecture}", text)
    shown = str(name.parent) == "models" and name.stem in pages.find_presets()
    return pages.add_page(text, name.stem) if shown else text


def on_post_build(config):
    """Write the pages that run models. MkDocs clears the site before it builds."""
    pages.write_pages(config.site_dir)
    site_checks.check_site(config.site_dir)


def _add_notebook(path, files, config):
    """Add a page for a notebook, its figures, and the notebook itself."""
    name = path.stem
    resources = {"output_files_dir": f"{name}_files"}
    text, resources = nbconvert.MarkdownExporter().from_filename(str(path), resources)
    title, _, body = text.partition("\n\n")
    text = f"{title}\n\n[This page as a notebook]({path.name})\n\n{body}"
    files.append(File.generated(config, f"notebooks/{name}.md", content=text))
    for picture, content in resources["outputs"].items():
        files.append(File.generated(config, f"notebooks/{picture}", content=content))


def _show_bars(markdown):
    r"""Return Markdown with `|` for `\|` in code, which this renderer would show as it is."""
    return re.sub(r"`[^`\n]*`", lambda code: code[0].replace(r"\|", "|"), markdown)


def _remove_code(markdown):
    return CODE.sub("", markdown)


def _find_target(origin, link):
    """Return the path from the root that `link` means on the page made of `origin`, or None."""
    if "://" in link or link.startswith("mailto:"):
        return None
    target = posixpath.normpath(posixpath.join(posixpath.dirname(origin), link))
    if (ROOT / target).is_dir():
        target = posixpath.join(target, "README.md")
    return target if (ROOT / target).is_file() else None


def _show_source(path):
    text = (ROOT / path).read_text()
    if path.endswith(".md"):
        return text
    language = LANGUAGES.get(pathlib.PurePath(path).suffix, "text")
    head = f"---\nsearch:\n  exclude: true\n---\n# {path}\n\n"
    return f"{head}~~~~~~{language}\n{text.rstrip()}\n~~~~~~\n"
