"""Text files, line by line, with errors that say where."""

import gzip
import pathlib
import zlib


def read_lines(path):
    """Yields (line number from 1, line without its end) of a UTF-8 file, gzipped or not."""
    content = _bytes(path)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        number = 1 + content.count(b"\n", 0, error.start)
        raise broken(path, number, f"not UTF-8 (byte 0x{content[error.start]:02x})") from error
    # Not splitlines: words may hold the separators of other alphabets, such as U+2028.
    for number, line in enumerate(text.split("\n"), start=1):
        yield number, line.removesuffix("\r")


def broken(path, number, what):
    """The error for line `number` of the file `path`."""
    return ValueError(f"{path}:{number}: {what}.")


def _bytes(path):
    path = pathlib.Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder: expected a file.")
    try:
        content = path.read_bytes()
    except FileNotFoundError as error:
        raise FileNotFoundError(f"There is no file {path}.") from error
    if not content.startswith(b"\x1f\x8b"):
        return content
    try:
        return gzip.decompress(content)
    except (EOFError, OSError, zlib.error) as error:
        raise ValueError(f"{path} is a broken gzip file: {error}.") from error
