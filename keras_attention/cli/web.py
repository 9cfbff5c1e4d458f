"""`web` and `serve`: a page that runs a preset in the browser."""

import tempfile

from keras_attention.cli.printing import keep_informed, say
from keras_attention.tasks import ImageClassifier, from_preset
from keras_attention.tasks.presets import find_preset
from keras_attention.web import serve_folder, write_page
from keras_attention.web.page import EXAMPLE


def web(preset, output, *, example=None, **options):
    """Writes the page into the folder `output`."""
    task = from_preset(preset, "keras")
    if example is None and isinstance(task, ImageClassifier):
        picture = find_preset(preset) / EXAMPLE
        example = str(picture) if picture.is_file() else None
    with keep_informed("exporting the model with its attention"):
        folder = write_page(task, output, example=example, **options)
    say(f"{folder}: put it behind any web server; {folder / 'index.html'} is the page")


def serve(preset, port, open_browser):
    """Writes the page into a temporary folder and serves it until Ctrl-C."""
    with tempfile.TemporaryDirectory() as temporary:
        web(preset, f"{temporary}/page")
        serve_folder(
            f"{temporary}/page",
            port,
            announce=lambda address: say(f"{address} (Ctrl-C ends it)"),
            open_browser=open_browser,
        )
