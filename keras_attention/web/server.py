"""A local web server for the folder of a page."""

import functools
import http.server
import threading
import webbrowser

KINDS = {".js": "text/javascript", ".wasm": "application/wasm"}  # missing on some systems


class Handler(http.server.SimpleHTTPRequestHandler):
    """Request handler that serves the files of a folder, and does not log requests."""

    extensions_map = {**http.server.SimpleHTTPRequestHandler.extensions_map, **KINDS}

    def log_message(self, *words):
        """Do nothing instead of logging a request."""


def serve_folder(folder, port=0, *, announce=print, open_browser=True):
    """Serve the files of a folder over HTTP on 127.0.0.1 until Ctrl-C.

    Args:
        folder: path of the folder.
        port: int, the port. 0 chooses a free port.
        announce: function that is called with the address (a str) when the server has started.
        open_browser: bool, whether to open the address in a browser.
    """
    handler = functools.partial(Handler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", port), handler) as server:
        address = f"http://127.0.0.1:{server.server_address[1]}/"
        announce(address)
        if open_browser:
            threading.Timer(0.3, webbrowser.open, [address]).start()
        server.serve_forever()
