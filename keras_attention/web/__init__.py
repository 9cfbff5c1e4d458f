"""A static page that runs a preset in the browser, by LiteRT.js, and shows what it looks at."""

from keras_attention.web.page import write_page
from keras_attention.web.server import serve_folder

__all__ = ["serve_folder", "write_page"]
