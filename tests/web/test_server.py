"""The server of a page on loopback."""

import pytest

from keras_attention.web import server


class Started:
    """In the place of `threading.Timer`: notes what would be done."""

    found = []

    def __init__(self, seconds, function, arguments):
        self.job = function, arguments

    def start(self):
        self.found.append(self.job)


@pytest.mark.parametrize("open_browser", [True, False])
def test_the_page_is_announced_and_opened(tmp_path, monkeypatch, open_browser):
    announced, served = [], []
    monkeypatch.setattr(Started, "found", [])
    monkeypatch.setattr(server.threading, "Timer", Started)
    kind = server.http.server.ThreadingHTTPServer
    monkeypatch.setattr(kind, "serve_forever", lambda self: served.append(self.server_address))
    server.serve_folder(tmp_path, announce=announced.append, open_browser=open_browser)
    ((host, port),) = served
    assert host == "127.0.0.1" and announced == [f"http://127.0.0.1:{port}/"]
    assert Started.found == [(server.webbrowser.open, announced)] * open_browser
