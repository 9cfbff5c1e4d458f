"""Write files atomically, read JSON of limited depth, and check file names."""

import contextlib
import glob
import json
import os
import pathlib
import secrets
import shutil

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

MOST_DEPTH = 64  # nesting of JSON
UNFINISHED = ".unfinished"  # suffix of files and folders that are being written
_PREVIOUS = ".previous"


def write_whole(path, content, before=None):
    """Write a file atomically: write it under a temporary name, then move it to `path`.

    Args:
        path: str or path of the file.
        content: bytes, the new content.
        before: function without arguments, called between writing and moving. None calls nothing.
    """
    path = pathlib.Path(path)
    unfinished = _name_unfinished(path)
    try:
        unfinished.write_bytes(content)
        if before is not None:
            before()
        move_into_place(unfinished, path)
    except BaseException:
        with contextlib.suppress(OSError):
            unfinished.unlink(missing_ok=True)
        raise


def write_json(path, content, before=None):
    """Write `content` as JSON to the file `path` atomically, like `write_whole`.

    `content` is any object that JSON can hold. `before` is a function that is called before the
    file is replaced, or None.
    """
    text = json.dumps(content, indent=2, ensure_ascii=False)
    write_whole(path, (text + "\n").encode("utf-8"), before)


@contextlib.contextmanager
def make_workplace(path):
    """Yield a temporary path for a file or folder that is later moved to `path`.

    Write it inside the `with` block, then call `move_into_place`, so that `path` is never half
    written. The temporary path is in a new folder next to `path`, so that the move is a single
    rename. This folder is removed at the end of the `with` block. After an error, the parent
    folders that were created for `path` are removed, too. If a process is killed, the next call for
    the same `path` removes its temporary folder.
    """
    path = pathlib.Path(path)
    made = [p for p in path.parents if not p.exists()]  # innermost first
    path.parent.mkdir(parents=True, exist_ok=True)
    folder = lock = None
    try:
        with lock_folder(path.parent):
            _remove_leftovers(path)
            folder = _name_unfinished(path)
            folder.mkdir(mode=0o700)
            lock = _try_lock(folder)
        yield folder / path.name
    except BaseException:
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)
        for parent in made:
            with contextlib.suppress(OSError):
                parent.rmdir()
        raise
    else:
        shutil.rmtree(folder)
    finally:
        if lock is not None:
            os.close(lock)


def move_into_place(new, path):
    """Rename the file or folder `new` to `path`, and replace an existing one.

    Both must be on the same disk. An existing folder is first moved next to `new`, and moved back
    if the rename fails.
    """
    new, path = pathlib.Path(new), pathlib.Path(path)
    if not path.is_dir():
        os.replace(new, path)
        return
    previous = new.with_name(_PREVIOUS)
    os.rename(path, previous)  # `os.replace` cannot replace a folder that is not empty
    try:
        os.rename(new, path)
    except BaseException:
        os.rename(previous, path)
        raise


def _name_unfinished(path):
    """Return a new temporary path next to `path`, with at most 40 characters of its name."""
    return path.with_name(f".{path.name[:40]}.{secrets.token_hex(4)}{UNFINISHED}")


def _remove_leftovers(path):
    """Remove the temporary folders that killed processes left next to `path`.

    If such a process had moved the existing folder at `path` away, move this folder back.
    """
    start = glob.escape(f".{path.name[:40]}.")
    for folder in path.parent.glob(f"{start}{'?' * 8}{UNFINISHED}"):
        lock = _try_lock(folder) if folder.is_dir() else None
        if lock is None:
            continue
        if (folder / _PREVIOUS).exists() and not path.exists():
            os.rename(folder / _PREVIOUS, path)
        with contextlib.suppress(FileNotFoundError):  # the process that created it just removed it
            shutil.rmtree(folder)
        os.close(lock)


@contextlib.contextmanager
def lock_folder(folder):
    """Lock `folder`, so that only one process or thread at a time changes its content.

    Yield True if the folder is locked, and False on Windows and network disks without such locks.
    The lock needs no file, and is released when the process ends. Do not lock a folder twice in one
    thread, which would wait forever.
    """
    if fcntl is None:
        yield False
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            locked = True
        except OSError:
            locked = False
        yield locked
    finally:
        os.close(descriptor)


def _try_lock(folder):
    """Lock `folder` without waiting, and return its file descriptor, or None if that fails.

    Locking fails if another process holds the lock, the folder does not exist, or the system lacks
    such locks. The lock is released when the descriptor is closed or the process ends.
    """
    if fcntl is None:
        return None
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


def read_json(path):
    """Read a JSON file, and return its content, which may be of any type. Errors name the file."""
    content = read_bytes(path)
    try:
        return parse_json(content.decode("utf-8-sig"))
    except ValueError as error:
        raise ValueError(f"{path} is not valid JSON: {error}. Fix or remove it.") from error


def parse_json(text, make_object=dict):
    """Parse JSON like `json.loads`, but raise a ValueError if it is nested too deeply.

    Args:
        text: str, the JSON to parse.
        make_object: function from the list of pairs (name, value) of an object to its value.
    """
    try:
        content = json.loads(text, object_pairs_hook=make_object)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    level = [content] if isinstance(content, list | dict) else []
    for _ in range(MOST_DEPTH):
        inner = [x.values() if isinstance(x, dict) else x for x in level]
        level = [x for values in inner for x in values if isinstance(x, list | dict)]
        if not level:
            return content
    raise ValueError("it is nested too deeply")


def read_bytes(path):
    """Return the bytes of a file. If the path is missing or a folder, the error names the path."""
    path = pathlib.Path(path)
    try:
        return path.read_bytes()
    except FileNotFoundError as error:
        raise FileNotFoundError(f"There is no file {path}.") from error
    except IsADirectoryError as error:
        raise IsADirectoryError(f"{path} is a folder: expected a file.") from error
    except ValueError as error:  # a NUL in the name
        raise ValueError(f"{str(path)!r} is not a valid file name.") from error


def leads_outside(name):
    """Return whether a file name is absolute or contains `..`, by POSIX or by Windows rules."""
    paths = pathlib.PurePosixPath(name), pathlib.PureWindowsPath(name)
    return any(path.root or path.drive or ".." in path.parts for path in paths)


def is_file(path):
    """Return whether `path` is an existing file. Invalid names return False."""
    try:
        return pathlib.Path(path).is_file()
    except (OSError, ValueError):  # too long, or with a NUL
        return False


@contextlib.contextmanager
def prefix_errors(path):
    """Prefix the message of a ValueError in the `with` block with `path`, a file or a name."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def number_errors(noun, inputs, function):
    """Yield `function(x)` for each `x` in `inputs`.

    If there are several inputs, the message of a ValueError begins with `noun` and the number of
    the input, such as "Text 2".

    Args:
        noun: str, what to call an input, such as "Text".
        inputs: list. Inputs are numbered from 1.
        function: function of one input.
    """
    for number, one in enumerate(inputs, start=1):
        with prefix_errors(f"{noun} {number}") if len(inputs) > 1 else contextlib.nullcontext():
            made = function(one)
        yield made


def path_inside(folder, name, location):
    """Return the path of the file `name` in `folder`, where `name` was read from another file.

    A folder may be malicious, and predictions and errors could reveal the content of a file. So a
    ValueError is raised unless the file is directly in `folder`, even after links are resolved. The
    file need not exist.

    Args:
        folder: str or path.
        name: str, the file name.
        location: str, the file and the field that hold the name, for the error, such as
            `"model/manifest.json: preprocessing.words"`.
    """
    check_plain(name, location)
    path = pathlib.Path(folder) / name
    try:
        inside = path.resolve().parent == path.parent.resolve()
    except (OSError, RuntimeError) as error:  # links in a circle
        raise ValueError(f"{location} is {quote_value(name)}, a broken link.") from error
    if not inside:
        raise ValueError(
            f"{location} is {quote_value(name)}, a link that leads out of {folder}. "
            "Copy the file itself there."
        )
    return path


def check_plain(name, location):
    """Raise a ValueError if `name` is not the name of a file without folders, such as "words.txt".

    `location` is the file and the field that hold the name, for the error, such as
    `"model/manifest.json: preprocessing.words"`.
    """
    plain = isinstance(name, str) and name not in ("", ".", "..") and not set(name) & set("/\\:\0")
    if not plain:
        raise ValueError(
            f"{location} is {quote_value(name)}: expected the plain name of a file in the same "
            "folder."
        )


def quote_value(value):
    """Return a short description of a JSON value for error messages, at most 60 characters."""
    if isinstance(value, list | dict):
        return "a list" if isinstance(value, list) else "an object"
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:56]}..."
