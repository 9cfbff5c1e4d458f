"""A headless Chromium that runs LiteRT files with LiteRT.js, driven from Python.

The page (`page.js`) gets jobs from a small server in this process and posts the results. It needs
only Chromium and the npm package, and runs many files in one session.
"""

import base64
import contextlib
import fcntl
import http.server
import json
import pathlib
import queue
import re
import shutil
import subprocess
import tempfile
import threading

import numpy as np

HERE = pathlib.Path(__file__).parent
MODULES = HERE / "node_modules"
GUIDES = sorted((HERE.parents[1] / "docs" / "on-device").glob("*.md"))
PROGRAMS = {"/litert.js": "@litertjs/core", "/texts.js": "openTextModel"}  # words in each
HARMLESS = ("INFO:", "WARNING:")  # lines of the runtime, which logs everything to one place
SECONDS = 300  # for one job: a browser that hangs is ended
CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


class BrowserError(Exception):
    """An error in the page, or of the runtime in it."""


def find_missing():
    """Return the program that a session needs and this machine lacks, a str, or None."""
    if not find_chromium():
        return f"none of {', '.join(CHROMIUM)} is installed"
    if not (MODULES / "@litertjs" / "core").is_dir() and not shutil.which("npm"):
        return "npm, which downloads LiteRT.js, is not installed"
    return None


def install_packages():
    """Fetches the packages of package-lock.json where they are not there yet."""
    with open(HERE / "package-lock.json", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # tests run in several processes
        packages = json.load(lock)["packages"]
        if not all(_is_installed(HERE / name, packages[name]) for name in filter(None, packages)):
            command = ["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"]
            subprocess.run(command, cwd=HERE, check=True, capture_output=True, text=True)


def _is_installed(folder, entry):
    package = folder / "package.json"
    if not package.is_file():
        return False
    return json.loads(package.read_text("utf-8"))["version"] == entry["version"]


def read_guide_program(words):
    """Return the block of JavaScript in `docs/on-device` that has these words."""
    (block,) = [block for block in read_guide_blocks("js") if words in block]
    return block


def read_guide_blocks(language):
    """Return the code blocks of all pages in `docs/on-device`, a list of str."""
    text = "\n".join(page.read_text("utf-8") for page in GUIDES)
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


@contextlib.contextmanager
def open_browser():
    """Open a `Session`. Its browser and server end with the block."""
    session = Session()
    with tempfile.TemporaryDirectory(prefix="chromium-", ignore_cleanup_errors=True) as profile:
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _make_handler(session))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        session.process = subprocess.Popen(
            [
                find_chromium(),
                "--headless=new",
                "--no-sandbox",  # it opens only our page, in CI as root
                "--no-first-run",
                "--disable-dev-shm-usage",
                f"--user-data-dir={profile}",
                "--disable-gpu",
                f"http://127.0.0.1:{server.server_port}/page.html",
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            yield session
        finally:
            session.jobs.put(None)
            session.process.kill()
            session.process.wait()
            server.shutdown()
            server.server_close()


class Session:
    """Runs files in the open page."""

    def __init__(self):
        self.jobs, self.answers, self.files = queue.Queue(), queue.Queue(), {}
        self.process = None

    def run(self, path, calls):
        """Runs signatures of the file at `path`.

        Args:
            calls: list of (name of a signature, its inputs: dict of arrays).

        Returns:
            The outputs, a dict of arrays for each call. An error in the page, or in the log of the
            runtime, is a BrowserError.
        """
        outputs = self._call(path, calls)["outputs"]
        return [{k: _unpack(v) for k, v in output.items()} for output in outputs]

    def time(self, path, calls):
        """Return how many milliseconds each call takes. The arguments are the same as in `run`."""
        return self._call(path, calls)["milliseconds"]

    def _call(self, path, calls):
        calls = [
            {"signature": name, "inputs": {k: _pack(v) for k, v in inputs.items()}}
            for name, inputs in calls
        ]
        return self.ask("run", path, calls=calls)

    def write(self, path, settings, prompt):
        """Return the ids that the guide's program writes with the file at `path`, step by step.

        Args:
            settings: dict, the file's `generation` in its manifest.
            prompt: list of ids, as long as the file needs.
        """
        return self.ask("write", path, about=settings, prompt=[int(x) for x in prompt])["ids"]

    def answer(self, path, method, texts):
        """Return the answers of the guide's program for texts, with the files at and beside `path`.

        Args:
            method: `"classify"` or `"tag"`.
            texts: list of str.
        """
        path = pathlib.Path(path)
        job = {"name": path.name, "method": method, "texts": texts}
        return self.ask("answer", path.parent, **job)["answers"]

    def ask(self, kind, path, **job):
        """Return the page's answer to a job about the file, or the folder, at `path`."""
        url = f"/files/{len(self.files)}"
        self.files[url] = pathlib.Path(path)
        self.jobs.put({"kind": kind, "file": url, **job})
        for _ in range(SECONDS):
            with contextlib.suppress(queue.Empty):
                answer = self.answers.get(timeout=1)
                break
            if self.process.poll() is not None:
                raise BrowserError(f"The browser ended with {self.process.returncode}.")
        else:
            raise BrowserError(f"No answer for {path} after {SECONDS} seconds.")
        errors = [line for line in answer["said"] if not line.startswith(HARMLESS)]
        if errors or "error" in answer:
            raise BrowserError("\n".join(filter(None, [answer.get("error"), *errors])))
        return answer


def _make_handler(session):
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            kind, content = _find_content(session, self.path)
            self.send_response(200 if content is not None else 404)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content or b"")))
            self.end_headers()
            with contextlib.suppress(ConnectionError):  # the browser has ended meanwhile
                self.wfile.write(content or b"")

        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(204)
            self.end_headers()
            session.answers.put(json.loads(body))

        def log_message(self, *_):
            pass

    return Handler


def _find_content(session, url):
    if url == "/job":
        return "application/json", json.dumps(session.jobs.get()).encode()
    if url in PROGRAMS:
        return "text/javascript", read_guide_program(PROGRAMS[url]).encode()
    folder, _, name = url.rpartition("/")
    path = session.files[folder] / name if folder in session.files else session.files.get(url)
    if path is None and url in ("/page.html", "/page.js"):
        path = HERE / url[1:]
    for prefix, folder in {"/modules/": MODULES, "/wasm/": MODULES / "@litertjs/core/wasm"}.items():
        if url.startswith(prefix):
            path = folder / url.removeprefix(prefix)
    if path is None or not path.is_file():
        return "text/plain", None
    kinds = {".html": "text/html", ".js": "text/javascript", ".wasm": "application/wasm"}
    return kinds.get(path.suffix, "application/octet-stream"), path.read_bytes()


def _pack(array):
    array = np.asarray(array)
    data = base64.b64encode(array.tobytes()).decode()
    return {"dtype": array.dtype.name, "shape": list(array.shape), "data": data}


def _unpack(packed):
    values = np.frombuffer(base64.b64decode(packed["data"]), packed["dtype"])
    return values.reshape(packed["shape"])


def find_chromium():
    return next(filter(None, map(shutil.which, CHROMIUM)), None)
