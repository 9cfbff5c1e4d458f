"""Pages of the site that run a trained model, for each preset whose task has such a page."""

import json
import logging
import pathlib
import shutil

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = "try"  # of the site
LITERT = "litert"  # one LiteRT.js for all pages
SCORES = "## Scores\n"
LINKING = ("index.html", "model.js")  # files of a page that name its address

log = logging.getLogger("mkdocs.hooks")


def find_presets():
    """Return the names of the presets that have a model to export and a page for its task."""
    from keras_attention.web.page import KINDS

    manifests = sorted(ROOT.glob("saved_models/*/manifest.json"))
    tasks = {path.parent: json.loads(path.read_text("utf-8"))["task"] for path in manifests}
    return [
        folder.name
        for folder, task in tasks.items()
        if task in KINDS and (folder / "model.keras").exists()
    ]


def add_page(card, name):
    """Return the card of a preset with the page that runs it above its scores."""
    address = f"../{FOLDER}/{name}/index.html"
    frame = (
        f'## Try it\n\n<iframe class="page" src="{address}" title="{name} in the browser" '
        f'loading="lazy"></iframe>\n\n<p><a href="{address}">Open it in its own window</a>. It '
        "runs in this browser, from any web server, but not from a folder.</p>\n\n"
    )
    assert SCORES in card, f"the card of {name} has no heading for its scores"
    return card.replace(SCORES, frame + SCORES, 1)


def write_pages(site):
    """Write the page of each preset into a folder of the site. Without npm it holds the error."""
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
            log.info("%s has no page: %s", name, error)
            output.mkdir()
            (output / "index.html").write_text(f"<p>{error}</p>\n", "utf-8")
            continue
        _share_litert_js(output, root / LITERT)


def _share_litert_js(page, shared):
    """Move LiteRT.js to a folder of all pages, because it is many times as large as a page."""
    if not shared.exists():
        shutil.move(page / LITERT, shared)
    shutil.rmtree(page / LITERT, ignore_errors=True)
    for name in LINKING:
        text = (page / name).read_text("utf-8")
        assert f"./{LITERT}/" in text
        (page / name).write_text(text.replace(f"./{LITERT}/", f"../{LITERT}/"), "utf-8")
