"""LiteRT.js, as its npm package has it."""

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
LICENCE = "APACHE-2.0.txt"  # which both packages name, and do not bring
FOLDER = "KERAS_ATTENTION_LITERT_JS"  # of node_modules that has the packages
# Without threads, which want headers of the server. A browser loads one of the two.
OTHERS = shutil.ignore_patterns("*.d.ts", "*.map", "*.json")
LOG = logging.getLogger(__name__)
WASM = ("litert_wasm_internal", "litert_wasm_compat_internal")


def copy_litert_js(folder):
    """Puts what a page needs of LiteRT.js, and its licence, into `folder`."""
    modules = find_packages()
    for name in PACKAGES:
        source, target = modules / name, folder / name.split("/")[1]
        shutil.copytree(source / "dist", target, ignore=OTHERS)
        shutil.copyfile(source / "package.json", target / "package.json")  # author and licence
        shutil.copyfile(STATIC / LICENCE, target / LICENCE)
    (folder / "wasm").mkdir()
    for path in sorted((modules / "@litertjs/core" / "wasm").iterdir()):
        if path.stem in WASM:
            shutil.copyfile(path, folder / "wasm" / path.name)


def find_packages():
    """Return the `node_modules` with LiteRT.js: the folder that is named, or one that npm fills."""
    if given := os.environ.get(FOLDER):
        modules = pathlib.Path(given)
        if missing := [name for name in PACKAGES if not (modules / name).is_dir()]:
            raise ValueError(f"{FOLDER}={given}: there is no {missing[0]} in it.")
        return modules
    root = pathlib.Path(os.environ.get(CACHE) or pathlib.Path.home() / ".cache")
    place = root / "keras_attention" / "litertjs" / PACKAGES["@litertjs/core"]
    if not place.is_dir():
        _install(place)
    return place / "node_modules"


def _install(place):
    """Fetches the packages by npm, which checks them."""
    if not shutil.which("npm"):
        raise ValueError(
            "npm is not installed, which fetches LiteRT.js for the page: install Node.js, or let "
            f"{FOLDER} name a node_modules folder that has {', '.join(PACKAGES)}."
        )
    wanted = [f"{name}@{version}" for name, version in PACKAGES.items()]
    options = ["--no-audit", "--no-fund", "--ignore-scripts", "--no-save"]
    LOG.info("fetching LiteRT.js")
    with make_workplace(place) as new:
        new.mkdir()
        with tempfile.TemporaryDirectory() as elsewhere:
            done = subprocess.run(
                ["npm", "install", "--prefix", str(new), *options, *wanted],
                cwd=elsewhere,
                capture_output=True,
                text=True,
            )
        if done.returncode:
            raise ValueError(f"npm could not fetch LiteRT.js: {done.stderr.strip()[-300:]}")
        move_into_place(new, place)
