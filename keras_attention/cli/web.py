"""The `web` and `serve` commands, which make a web page that runs a preset in the browser."""

import tempfile

from keras_attention.cli.printing import keep_informed, say
from keras_attention.tasks import ImageClassifier, from_preset
from keras_attention.tasks.presets import find_preset
from keras_attention.web import serve_folder, write_page
from keras_attention.web.page import EXAMPLE


def web(preset, output, *, title=None, example=None):
    """Write a web page that runs a preset in the browser to the folder `output`.

    `preset` is the folder or name of a trained model. `title` is the title of the page, and
    `example` its first input: a text, or the path of an image.
    """
    task = from_preset(preset, "keras")
    if example is None and isinstance(task, ImageClassifier):
        image = find_preset(preset) / EXAMPLE
        example = str(image) if image.is_file() else None
    with keep_informed("exporting the model with its attention"):
        folder = write_page(task, output, title=title, example=example)
    say(f"{folder} is ready for any web server. {folder / 'index.html'} is the page.")


def serve(preset, port, open_browser):
    """Write a web page for a preset to a temporary folder, and serve it until Ctrl-C.

    `preset` is the folder or name of a trained model. `port` is a port on 127.0.0.1, 0 for a free
    one. `open_browser` is a bool, whether to open the page in a browser.
    """
    with tempfile.TemporaryDirectory() as temporary:
        web(preset, f"{temporary}/page")
        serve_folder(
            f"{temporary}/page",
            port,
            announce=lambda address: say(f"{address} (press Ctrl-C to stop)"),
            open_browser=open_browser,
        )
