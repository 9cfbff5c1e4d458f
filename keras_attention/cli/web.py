"""`web` and `serve`: a page that runs a preset in the browser."""

import tempfile

from keras_attention.tasks import from_preset
from keras_attention.tasks.printing import keep_informed, say
from keras_attention.web import serve_folder, write_page


def web(preset, output, **options):
    """Writes the page into the folder `output`."""
    with keep_informed("exporting the model with its attention"):
        folder = write_page(from_preset(preset, "keras"), output, **options)
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
