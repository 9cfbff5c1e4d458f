"""Lists of recordings and their transcripts: tables, lists and folders."""

import pathlib
from functools import partial

from keras_attention.data.readers.sphinx import list_sphinx
from keras_attention.data.readers.tables import (
    SEPARATORS,
    check_once,
    find_name,
    find_suffix,
    line_error,
    read_lines,
    read_objects,
    read_rows,
)
from keras_attention.files.io import leads_outside

SUFFIXES = (".wav", ".flac")
TRANSCRIPTS = "transcripts.tsv"  # name of the table in a folder
COLUMNS = ("path", "text")
OPTIONAL = ("speaker", "translation")  # optional columns
MOST_COLUMNS = 256


def list_recordings(path, columns, encoding, problems):
    """List the recordings in a table, a folder or a list, without reading the sound files.

    Return a list of (place, sound file, transcript, speaker, translation). The place is the file
    and line, for error messages. Speaker and translation may be missing. `columns` are two names or
    two indices, of the columns with path and transcript. Errors are collected in `problems`, a
    `Problems`.
    """
    path = pathlib.Path(path)
    if path.is_dir() and (path / TRANSCRIPTS).is_file():
        path = path / TRANSCRIPTS
    if path.suffix == ".fileids":
        recordings = list_sphinx(path, encoding)
    elif path.is_file():
        recordings = _read_table(path, columns, encoding, problems)
    else:
        rows = (
            (file, number, line)
            for file in sorted(path.rglob("*.trans.txt"))
            for number, line in read_lines(file, encoding)
            if line.strip()
        )
        recordings = problems.read_each(_read_librispeech_line, rows)
    if not recordings and not problems:
        raise ValueError(
            f"{path} names no recordings: expected a .csv, .tsv or .jsonl file of paths and "
            f"transcripts, a folder with {TRANSCRIPTS}, or one with LibriSpeech's files "
            "*.trans.txt."
        )
    return recordings


def _read_table(path, columns, encoding, problems):
    suffix, read = find_suffix(path) or ".tsv", _name_row
    if suffix == ".jsonl":
        rows = read_objects(path, encoding, problems)
    elif rows := list(read_rows(path, SEPARATORS[suffix], encoding)):
        number, first = rows[0]
        names = [find_name(column, first) for column in columns]
        if isinstance(columns[0], str) and isinstance(columns[1], str) and None not in names:
            for name in {*names, *OPTIONAL}:
                check_once(name, first, partial(line_error, path, number))
            rows = [(number, dict(zip(first, row, strict=False))) for number, row in rows[1:]]
        else:
            read = _read_row
            if columns == COLUMNS and pathlib.PurePath(first[0].strip()).suffix:  # a file name
                columns = 0, 1
            elif isinstance(columns[0], str):
                _refuse_names(path, number, first, columns, names)
    return problems.read_each(read, ((path, number, row, columns) for number, row in rows))


def _refuse_names(path, number, first, columns, names):
    missing = columns[names.index(None)]
    parameter = "sound_column" if missing == columns[0] else "text_column"
    raise line_error(
        path,
        number,
        f"no column {missing!r}, the first row names {', '.join(first)}. Choose with {parameter}= "
        "a name, or a number from 0 if no row names the columns",
    )


def _read_row(path, number, row, columns):
    """Return the fields of one recording from `row`, the values in a table without names."""
    place = f"{path}, line {number}"
    if not max(columns) < len(row) <= MOST_COLUMNS:
        raise ValueError(
            f"{place}: {len(row)} columns: expected a path, a transcript, speaker and translation."
        )
    speaker, translation = [*row[2:], "", ""][:2] if columns == (0, 1) else ("", "")
    return _make_row(path, place, *(row[k] for k in columns), speaker, translation)


def _name_row(path, number, row, columns):
    """Return the fields of one recording in `row`, a dict from column names to values."""
    names = [find_name(column, list(row)) for column in columns]
    if None in names:
        _refuse_names(path, number, list(row), columns, names)
    optional = [row.get(find_name(name, list(row))) or "" for name in OPTIONAL]
    values = [row[name] or "" for name in names]
    return _make_row(path, f"{path}, line {number}", *values, *optional)


def _make_row(path, place, sound, text, speaker, translation):
    cells = [str(cell).strip() for cell in (sound, text, speaker, translation)]
    if not cells[0]:
        raise ValueError(f"{place}: the path is empty.")
    return place, path.parent / cells[0], cells[1], cells[2] or None, cells[3] or None


def _read_librispeech_line(path, number, line):
    place = f"{path}, line {number}"
    name, _, text = line.strip().partition(" ")
    if leads_outside(name):
        raise ValueError(f"{place}: {name!r}: expected the name of a sound beside this file.")
    files = [path.parent / f"{name}{suffix}" for suffix in SUFFIXES]
    for file in files:
        if file.is_file():
            return place, file, text.strip(), name.partition("-")[0]
    raise ValueError(f"{place}: there is neither {files[0]} nor {files[1].name}.")
