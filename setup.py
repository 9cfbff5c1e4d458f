"""Puts the presets of the README and the scripts of the lecture into the wheel. See setup.cfg."""

import pathlib
import shutil

from setuptools import setup
from setuptools.command.build_py import build_py

PRESETS = ("digits-vit", "pos-tagger-en-ewt")
FILES = ("model.keras", "*.json", "*.txt", "README.md")  # 6 MB, without the exported files
ROOT = pathlib.Path(__file__).parent


class BuildWithFiles(build_py):
    def run(self):
        super().run()
        if self.editable_mode:  # the files are found in the clone
            return
        copies = [(f"saved_models/{name}", f"presets/{name}", FILES) for name in PRESETS]
        copies += [("examples/lecture", "lecture", ("*.py", "*.toml"))]
        for source, target, patterns in copies:
            folder = pathlib.Path(self.build_lib) / "keras_attention" / target
            folder.mkdir(parents=True, exist_ok=True)
            for pattern in patterns:
                for file in (ROOT / source).glob(pattern):
                    shutil.copy2(file, folder)


setup(cmdclass={"build_py": BuildWithFiles})
