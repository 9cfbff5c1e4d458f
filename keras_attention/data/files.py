"""Files that are complete or not there."""

import json
import os
import pathlib


def write_whole(path, content):
    """Writes the bytes `content`, under another name until all are there."""
    path = pathlib.Path(path)
    unfinished = path.with_name(f".{path.name}.unfinished")
    unfinished.write_bytes(content)
    os.replace(unfinished, path)


def write_json(path, content):
    text = json.dumps(content, indent=2, ensure_ascii=False)
    write_whole(path, (text + "\n").encode("utf-8"))


def read_json(path):
    try:
        return json.loads(pathlib.Path(path).read_text("utf-8"))
    except FileNotFoundError as error:
        raise FileNotFoundError(f"There is no file {path}.") from error
    except ValueError as error:
        raise ValueError(f"{path} is not valid JSON: {error}. Mend or remove it.") from error
