"""Tables, lists and folders that name recordings and what is said in them."""

import pathlib
from functools import partial

from keras_attention.data.readers.columns import (
    SEPARATORS,
    check_once,
    find_name,
    find_suffix,
    line_error,
    read_lines,
    read_objects,
    read_rows,
)
from keras_attention.data.readers.sphinx import list_sphinx
from keras_attention.files.io import leads_outside

SUFFIXES = (".wav", ".flac")
TRANSCRIPTS = "transcripts.tsv"  # of a folder
COLUMNS = ("path", "text")
ABOUT = ("speaker", "translation")  # columns that may be there
MOST_COLUMNS = 256


def list_recordings(path, columns, encoding, problems):
    """Return (place for errors, sound file, transcript, ...) of each recording that `path` names.

    What follows are the other fields of a `Recording`: speaker, and translation where there is one.

    Args:
        columns: (of the path, of the transcript), names or numbers.
        problems: `Problems`, for rows that are broken.
    """
    path = pathlib.Path(path)
    if path.is_dir() and (path / TRANSCRIPTS).is_file():
        path = path / TRANSCRIPTS
    if path.suffix == ".fileids":
        recordings = list_sphinx(path, encoding)
    elif path.is_file():
        recordings = _read_table(path, columns, encoding, problems)
    else:
        files = sorted(path.rglob("*.trans.txt"))
        recordings = [row for file in files for row in _read_librispeech(file, encoding, problems)]
    if not recordings and not problems:
        raise ValueError(
            f"{path} names no recordings: expected a .csv, .tsv or .jsonl file of paths and "
            f"transcripts, a folder with {TRANSCRIPTS}, or one with files *.trans.txt as "
            "LibriSpeech has them."
        )
    return recordings


def _read_table(path, columns, encoding, problems):
    """List the recordings of a file of columns, whose first row may name them."""
    suffix = find_suffix(path) or ".tsv"
    if suffix == ".jsonl":
        rows = read_objects(path, encoding, problems)
        return _name_rows(path, rows, columns, problems)
    rows = list(read_rows(path, SEPARATORS[suffix], encoding))
    if not rows:
        return []
    number, first = rows[0]
    names = [find_name(column, first) for column in columns]
    if all(isinstance(column, str) for column in columns) and None not in names:
        for name in {*names, *ABOUT}:
            check_once(name, first, partial(line_error, path, number))
        named = [(number, dict(zip(first, row, strict=False))) for number, row in rows[1:]]
        return _name_rows(path, named, columns, problems)
    if columns == COLUMNS and pathlib.PurePath(first[0].strip()).suffix:  # it is that of a file
        columns = 0, 1
    elif isinstance(columns[0], str):
        _refuse_names(path, number, first, columns, names)
    recordings = []
    for number, row in rows:
        with problems.note():
            recordings.append(_read_row(path, number, row, columns))
    return recordings


def _refuse_names(path, number, first, columns, names):
    missing = columns[names.index(None)]
    option = "sound_column" if missing == columns[0] else "text_column"
    raise line_error(
        path,
        number,
        f"no column {missing!r}; the first row has {', '.join(first)}. Say which it is, with "
        f"{option}=: a name, or a number from 0 where no row names the columns",
    )


def _read_row(path, number, row, columns):
    """Read one recording of a table whose first row names nothing."""
    place = f"{path}, line {number}"
    if not max(columns) < len(row) <= MOST_COLUMNS:
        raise ValueError(
            f"{place}: {len(row)} columns: expected a path and a transcript, and then perhaps a "
            "speaker, and a translation."
        )
    speaker, translation = [*row[2:], "", ""][:2] if columns == (0, 1) else ("", "")
    return _make_row(path, place, *(row[k] for k in columns), speaker, translation)


def _name_rows(path, rows, columns, problems):
    """List the recordings of rows that are dicts of the names of columns."""
    recordings = []
    for number, row in rows:
        with problems.note():
            names = [find_name(column, list(row)) for column in columns]
            if None in names:
                _refuse_names(path, number, list(row), columns, names)
            optional = [row.get(find_name(name, list(row))) or "" for name in ABOUT]
            place = f"{path}, line {number}"
            recordings.append(
                _make_row(path, place, *(row[name] or "" for name in names), *optional)
            )
    return recordings


def _make_row(path, place, sound, text, speaker, translation):
    cells = [str(cell).strip() for cell in (sound, text, speaker, translation)]
    if not cells[0]:
        raise ValueError(f"{place}: the path is empty.")
    return place, path.parent / cells[0], cells[1], cells[2] or None, cells[3] or None


def _read_librispeech(path, encoding, problems):
    recordings = []
    for number, line in read_lines(path, encoding):
        name, _, text = line.strip().partition(" ")
        files = [path.parent / f"{name}{suffix}" for suffix in SUFFIXES]
        existing = [file for file in files if file.is_file()]
        place = f"{path}, line {number}"
        if leads_outside(name):
            with problems.note():
                raise ValueError(
                    f"{place}: {name!r} leads elsewhere: expected the name of a sound beside this "
                    "file."
                )
        elif name and not existing:
            with problems.note():
                raise ValueError(f"{place}: there is neither {files[0]} nor {files[1].name}.")
        elif name:
            recordings.append((place, existing[0], text.strip(), name.partition("-")[0]))
    return recordings
