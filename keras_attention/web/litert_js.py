"""Find the npm packages of LiteRT.js, and copy the files that a web page needs."""

import logging
import os
import pathlib
import shutil
import subprocess
import tempfile

from keras_attention.files.io import make_workplace, move_into_place
from keras_attention.tasks.presets import CACHE

PACKAGES = {"@litertjs/core": "2.5.3", "@litertjs/wasm-utils": "2.5.3"}
STATIC = pathlib.Path(__file__).parent / "static"
LICENSE = "APACHE-2.0.txt"  # the license of both packages, which do not contain its text
FOLDER = "KERAS_ATTENTION_LITERT_JS"  # environment variable with the path of a node_modules
# Files that the page does not need. (The wasm files with threads need special HTTP headers.)
OTHERS = shutil.ignore_patterns("*.d.ts", "*.map", "*.json")
LOG = logging.getLogger(__name__)
WASM = ("litert_wasm_internal", "litert_wasm_compat_internal")


def copy_litert_js(folder):
    """Copy the files of LiteRT.js that a web page needs, and its license, to a folder."""
    modules = find_packages()
    for name in PACKAGES:
        source, target = modules / name, folder / name.split("/")[1]
        shutil.copytree(source / "dist", target, ignore=OTHERS)
        shutil.copyfile(source / "package.json", target / "package.json")  # author and license
        shutil.copyfile(STATIC / LICENSE, target / LICENSE)
    (folder / "wasm").mkdir()
    for path in sorted((modules / "@litertjs/core" / "wasm").iterdir()):
        if path.stem in WASM:
            shutil.copyfile(path, folder / "wasm" / path.name)


def find_packages():
    """Return the path of a `node_modules` folder that contains LiteRT.js.

    It is the folder in the environment variable `FOLDER`, or else one in the cache, where npm
    installs the packages if they are missing.
    """
    if path := os.environ.get(FOLDER):
        modules = pathlib.Path(path)
        if missing := [name for name in PACKAGES if not (modules / name).is_dir()]:
            raise ValueError(f"{FOLDER}={path} has no {missing[0]}: name a folder that has it.")
        return modules
    root = pathlib.Path(os.environ.get(CACHE) or pathlib.Path.home() / ".cache")
    folder = root / "keras_attention" / "litertjs" / PACKAGES["@litertjs/core"]
    if not folder.is_dir():
        _install(folder)
    return folder / "node_modules"


def _install(folder):
    """Download the packages with npm, which verifies them, and install them in `folder`."""
    if not shutil.which("npm"):
        raise ValueError(
            "npm, which downloads LiteRT.js for the page, is not installed: install Node.js, or "
            f"set {FOLDER} to a node_modules folder that has {', '.join(PACKAGES)}."
        )
    packages = [f"{name}@{version}" for name, version in PACKAGES.items()]
    options = ["--no-audit", "--no-fund", "--ignore-scripts", "--no-save"]
    LOG.info("fetching LiteRT.js")
    with make_workplace(folder) as new:
        new.mkdir()
        with tempfile.TemporaryDirectory() as elsewhere:
            done = subprocess.run(
                ["npm", "install", "--prefix", str(new), *options, *packages],
                cwd=elsewhere,
                capture_output=True,
                text=True,
            )
        if done.returncode:
            raise ValueError(f"npm could not fetch LiteRT.js: {done.stderr.strip()[-300:]}")
        move_into_place(new, folder)
