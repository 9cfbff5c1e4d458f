"""A page in headless Chromium that runs JavaScript for tests."""

import contextlib
import http.server
import json
import pathlib
import queue
import subprocess
import tempfile
import threading

from keras_attention.web.server import KINDS
from tests.browser.session import HARMLESS, find_chromium

HERE = pathlib.Path(__file__).parent
SECONDS = 240
# Recorded from the start: lines on the console of the page, and uncaught errors.
RECORDER = b"""<script>
  window.said = [];
  console.error = (...words) => said.push(words.map(String).join(' '));
  addEventListener('error', event => said.push(String(event.message)));
  addEventListener('unhandledrejection', event => said.push(String(event.reason)));
</script>"""


class OpenedPage:
    """Runs programs in a page.

    Args:
        folder: the folder of the page.
        size: (width, height) of the window.
    """

    def __init__(self, folder):
        self.folder, self.jobs, self.answers = pathlib.Path(folder), queue.Queue(), queue.Queue()

    def run(self, program, argument=None):
        """Run the body of an async function of `given`, and return its result."""
        self.jobs.put({"program": program, "given": argument})
        answer = self.answers.get(timeout=SECONDS)
        lines = [line for line in answer["said"] if not line.startswith(HARMLESS)]
        assert "error" not in answer and not lines, (answer.get("error"), lines)
        return answer.get("value")  # JSON has no undefined

    def ask(self, *words):
        """Return the page's answer to an input."""
        return self.run("return (await ready)(...given);", words)


@contextlib.contextmanager
def open_page(folder):
    """Open a page, and close its browser and server at the end of the block."""
    page = OpenedPage(folder)
    with (
        http.server.ThreadingHTTPServer(("127.0.0.1", 0), _make_handler(page)) as server,
        tempfile.TemporaryDirectory(prefix="chromium-", ignore_cleanup_errors=True) as profile,
    ):
        threading.Thread(target=server.serve_forever, daemon=True).start()
        options = ["--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}"]
        process = subprocess.Popen(
            [
                find_chromium(),
                *options,
                "--disable-dev-shm-usage",
                f"http://127.0.0.1:{server.server_port}/harness.html",
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            yield page
        finally:
            process.kill()
            process.wait()
            page.jobs.put({})
            server.shutdown()


def _make_handler(page):
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            path = self.path.partition("?")[0]
            if path == "/job":
                return self._send("application/json", json.dumps(page.jobs.get()).encode())
            file = HERE / "harness.html"
            if path.startswith("/page/"):
                file = page.folder / path.removeprefix("/page/")
            if not file.is_file():
                return self._send("text/plain", b"", 404)
            content = file.read_bytes()
            if file.name == "index.html":
                content = content.replace(b"<head>", b"<head>" + RECORDER)
            self._send({**KINDS, ".html": "text/html"}.get(file.suffix, "text/plain"), content)

        def do_POST(self):
            page.answers.put(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self._send("text/plain", b"")

        def _send(self, kind, content, status=200):
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            with contextlib.suppress(ConnectionError):
                self.wfile.write(content)

        def log_message(self, *_):
            pass

    return Handler
