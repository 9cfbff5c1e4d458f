"""A web server on loopback for a page's folder."""

import functools
import http.server
import threading
import webbrowser

KINDS = {".js": "text/javascript", ".wasm": "application/wasm"}  # not all systems know them


class Handler(http.server.SimpleHTTPRequestHandler):
    """Serves a folder, without a word for each file."""

    extensions_map = {**http.server.SimpleHTTPRequestHandler.extensions_map, **KINDS}

    def log_message(self, *words):
        """Says nothing."""


def make_server(folder, port=0):
    """Return a server of `folder` on loopback; `server_address` has its port."""
    handler = functools.partial(Handler, directory=str(folder))
    return http.server.ThreadingHTTPServer(("127.0.0.1", port), handler)


def serve_folder(folder, port=0, *, announce=print, open_browser=True):
    """Serves `folder` on loopback until Ctrl-C, and opens it in a browser.

    Args:
        port: int; 0 takes a free one.
        announce: function of the address.
    """
    with make_server(folder, port) as server:
        address = f"http://127.0.0.1:{server.server_address[1]}/"
        announce(address)
        if open_browser:
            threading.Timer(0.3, webbrowser.open, [address]).start()
        server.serve_forever()
