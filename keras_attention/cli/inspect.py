"""`inspect`: what is in a model file."""

from keras_attention import export, models  # noqa: F401  (the layers that a .keras file names)
from keras_attention.cli import folder as folders
from keras_attention.cli.console import say


def inspect(path):
    """Prints signatures, ops and size of a model file, or of each in a trained folder."""
    found = [path / name for name in folders.FORMATS.values() if (path / name).exists()]
    for k, file in enumerate(found or [path]):
        content = export.inspect(file)
        if not content.signatures:
            raise ValueError(f"{file} is damaged: it holds no signature.")
        say(("\n" if k else "") + str(content))
