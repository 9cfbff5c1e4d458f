"""Puts the presets that the README uses into the wheel; all else is in setup.cfg."""

import pathlib
import shutil

from setuptools import setup
from setuptools.command.build_py import build_py

PRESETS = ("digits-vit", "pos-tagger-en-ewt")
FILES = ("model.keras", "*.json", "*.txt", "README.md")  # 6 MB, without the exported files
ROOT = pathlib.Path(__file__).parent


class BuildWithPresets(build_py):
    def run(self):
        super().run()
        if self.editable_mode:  # presets are found in saved_models/
            return
        for name in PRESETS:
            folder = pathlib.Path(self.build_lib) / "keras_attention" / "presets" / name
            folder.mkdir(parents=True, exist_ok=True)
            for pattern in FILES:
                for file in (ROOT / "saved_models" / name).glob(pattern):
                    shutil.copy2(file, folder)


setup(cmdclass={"build_py": BuildWithPresets})
