"""Static web pages that run a model in the browser with LiteRT.js, and show its attention."""

from keras_attention.web.page import write_page
from keras_attention.web.server import serve_folder

__all__ = ["serve_folder", "write_page"]
