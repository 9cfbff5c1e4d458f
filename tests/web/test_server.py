"""The local server of a page."""

import pytest

from keras_attention.web import server


class Started:
    """Replaces `threading.Timer`, and records the calls."""

    jobs = []

    def __init__(self, seconds, function, arguments):
        self.job = function, arguments

    def start(self):
        self.jobs.append(self.job)


@pytest.mark.parametrize("open_browser", [True, False])
def test_server_announces_and_opens_the_page(tmp_path, monkeypatch, open_browser):
    announced, served = [], []
    monkeypatch.setattr(Started, "jobs", [])
    monkeypatch.setattr(server.threading, "Timer", Started)
    kind = server.http.server.ThreadingHTTPServer
    monkeypatch.setattr(kind, "serve_forever", lambda self: served.append(self.server_address))
    server.serve_folder(tmp_path, announce=announced.append, open_browser=open_browser)
    ((host, port),) = served
    assert host == "127.0.0.1" and announced == [f"http://127.0.0.1:{port}/"]
    assert Started.jobs == [(server.webbrowser.open, announced)] * open_browser
