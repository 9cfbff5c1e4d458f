"""Files written whole or not at all, JSON read with bounds, and names that stay inside a folder."""

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

MOST_DEPTH = 64  # of JSON
UNFINISHED = ".unfinished"  # suffix of files and folders that are being written
_PREVIOUS = ".previous"


def write_whole(path, content, before=None):
    """Write the bytes `content` under a temporary name, then move the file into place.

    Args:
        before: function, called when all bytes are written, before the move.
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
    text = json.dumps(content, indent=2, ensure_ascii=False)
    write_whole(path, (text + "\n").encode("utf-8"), before)


@contextlib.contextmanager
def make_workplace(path):
    """Yield a path to write a file or folder to, which `move_into_place` then moves to `path`.

    It is in a folder of its own beside `path`, so that the move is one rename. The folder is
    removed at the end of the block, and after an error also the folders that were made for `path`.
    The next process that works here removes the leftovers of a killed one.
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
    """Rename the file or folder `new` to `path`, and replace an old one.

    Both are on one disk. An old folder is moved aside first, beside `new`.
    """
    new, path = pathlib.Path(new), pathlib.Path(path)
    if not path.is_dir():
        os.replace(new, path)
        return
    previous = new.with_name(_PREVIOUS)
    os.rename(path, previous)  # a folder that is not empty cannot be replaced in one step
    try:
        os.rename(new, path)
    except BaseException:
        os.rename(previous, path)
        raise


def _name_unfinished(path):
    """Return a new name beside `path`, cut because names have a longest length."""
    return path.with_name(f".{path.name[:40]}.{secrets.token_hex(4)}{UNFINISHED}")


def _remove_leftovers(path):
    """Remove workplaces for `path` of dead processes, and put back the file they replaced."""
    start = glob.escape(f".{path.name[:40]}.")
    for folder in path.parent.glob(f"{start}{'?' * 8}{UNFINISHED}"):
        lock = _try_lock(folder) if folder.is_dir() else None
        if lock is None:
            continue
        if (folder / _PREVIOUS).exists() and not path.exists():
            os.rename(folder / _PREVIOUS, path)
        with contextlib.suppress(FileNotFoundError):  # the process that made it removed it just now
            shutil.rmtree(folder)
        os.close(lock)


@contextlib.contextmanager
def lock_folder(folder):
    """Let one writer at a time, of all processes and threads, change what `folder` holds.

    The lock ends with its process, however that ends. Unlike the library filelock it leaves no file
    behind. Yields whether it locks: Windows and some network disks have no such locks. It must not
    be taken twice.
    """
    if fcntl is None:
        yield False
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            alone = True
        except OSError:
            alone = False
        yield alone
    finally:
        os.close(descriptor)


def _try_lock(folder):
    """Lock `folder` and return the descriptor, or None without a lock.

    Another process may hold the lock, the folder may be gone, or the system may lack such locks.
    Closing the descriptor, or the end of the process, releases the lock.
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
    """Read the JSON file `path`, of any type. Errors name the file."""
    content = read_bytes(path)
    try:
        return parse_json(content.decode("utf-8-sig"))
    except ValueError as error:
        raise ValueError(f"{path} is not valid JSON: {error}. Mend or remove it.") from error


def parse_json(text, make_object=dict):
    """Do `json.loads` with `make_object` of the pairs of each object.

    Raises a ValueError for every text that is not JSON, or nested too deeply for recursive code.
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
    """Read the bytes of a file. The error for a missing file or a folder names it."""
    path = pathlib.Path(path)
    try:
        return path.read_bytes()
    except FileNotFoundError as error:
        raise FileNotFoundError(f"There is no file {path}.") from error
    except IsADirectoryError as error:
        raise IsADirectoryError(f"{path} is a folder: expected a file.") from error
    except ValueError as error:  # a NUL in the name
        raise ValueError(f"{str(path)!r} is no name of a file.") from error


def leads_outside(name):
    """Return whether a file name in a data file is absolute or has `..` in it, on any system."""
    paths = pathlib.PurePosixPath(name), pathlib.PureWindowsPath(name)
    return any(path.root or path.drive or ".." in path.parts for path in paths)


def is_file(path):
    """Return whether there is a file of this name, also for names that files cannot have."""
    try:
        return pathlib.Path(path).is_file()
    except (OSError, ValueError):  # too long, or with a NUL
        return False


@contextlib.contextmanager
def prefix_errors(path):
    """Put the name of the file in front of a ValueError about what `path` holds."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def number_errors(noun, inputs, function):
    """Yield `function(one)` for each of `inputs`. Of several, a ValueError names the number.

    Args:
        noun: str, the word in front of the number, counted from 1: "Text".
        inputs: list.
    """
    for number, one in enumerate(inputs, start=1):
        with prefix_errors(f"{noun} {number}") if len(inputs) > 1 else contextlib.nullcontext():
            made = function(one)
        yield made


def path_inside(folder, name, owner):
    """Return the path of the file `name` in `folder`, which another file there names.

    A folder may come from anyone, and predictions and errors show what is read. So the name must be
    that of a file in the folder itself, and no link may lead out of it.

    Args:
        folder: path.
        name: the name as it was read. It need not be a str.
        owner: str, where the name stands, for the error: `model/manifest.json:
            preprocessing.words`.

    Returns:
        pathlib.Path. The file need not exist.

    Raises:
        ValueError: it is not a plain name, or names a link that leads out.
    """
    check_plain(name, owner)
    path = pathlib.Path(folder) / name
    try:
        inside = path.resolve().parent == path.parent.resolve()
    except (OSError, RuntimeError) as error:  # links in a circle
        raise ValueError(f"{owner} is {quote_value(name)}, a link that leads nowhere.") from error
    if not inside:
        raise ValueError(
            f"{owner} is {quote_value(name)}, a link that leads out of {folder}. "
            "Copy the file itself there."
        )
    return path


def check_plain(name, owner):
    """Refuse a name that is not a plain file name. Arguments are as in `path_inside`."""
    plain = isinstance(name, str) and name not in ("", ".", "..") and not set(name) & set("/\\:\0")
    if not plain:
        raise ValueError(
            f"{owner} is {quote_value(name)}: expected the plain name of a file beside it."
        )


def quote_value(value):
    """Return a value of JSON as errors quote it: short, whatever its length and depth."""
    if isinstance(value, list | dict):
        return "a list" if isinstance(value, list) else "an object"
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:56]}..."
