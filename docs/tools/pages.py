"""Pages that run a trained model, inside of the site: one for each preset whose task has a page."""

import json
import logging
import pathlib
import shutil

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = "try"  # of the site
LITERT = "litert"  # one LiteRT.js for all pages
SCORES = "## Scores\n"
LINKING = ("index.html", "model.js")  # files of a page that say where it lies

log = logging.getLogger("mkdocs.hooks")


def find_presets():
    """The names of the presets that have a model to export, and a page for it."""
    from keras_attention.web.page import KINDS

    manifests = sorted(ROOT.glob("saved_models/*/manifest.json"))
    tasks = {path.parent: json.loads(path.read_text("utf-8"))["task"] for path in manifests}
    return [
        folder.name
        for folder, task in tasks.items()
        if task in KINDS and (folder / "model.keras").exists()
    ]


def add_page(card, name):
    """The card of a preset with the page that runs it, above its scores."""
    address = f"../{FOLDER}/{name}/index.html"
    frame = (
        f'## Try it\n\n<iframe class="page" src="{address}" title="{name} in the browser" '
        f'loading="lazy"></iframe>\n\n<p><a href="{address}">The page alone</a>. It runs in this '
        "browser, behind any web server; from a folder it does not.</p>\n\n"
    )
    assert SCORES in card, f"the card of {name} has no heading for its scores"
    return card.replace(SCORES, frame + SCORES, 1)


def write_pages(site):
    """Writes the page of each preset into a folder of the site; without npm, says so instead."""
    import keras_attention as ka

    root = pathlib.Path(site) / FOLDER
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir(parents=True)
    for name in find_presets():
        output = root / name
        try:
            task = ka.tasks.from_preset(ROOT / "saved_models" / name, "keras")
            ka.web.write_page(task, output, title=name)
        except ValueError as error:
            if "npm" not in str(error):
                raise
            log.info("%s: no page of it is made: %s", name, error)
            output.mkdir()
            (output / "index.html").write_text(f"<p>{error}</p>\n", "utf-8")
            continue
        _share_litert_js(output, root / LITERT)


def _share_litert_js(page, shared):
    """Puts LiteRT.js where all pages find it: it is many times as large as they are."""
    if not shared.exists():
        shutil.move(page / LITERT, shared)
    shutil.rmtree(page / LITERT, ignore_errors=True)
    for name in LINKING:
        text = (page / name).read_text("utf-8")
        assert f"./{LITERT}/" in text
        (page / name).write_text(text.replace(f"./{LITERT}/", f"../{LITERT}/"), "utf-8")
