"""Lines of text files, and rows of files with columns: CSV, TSV and JSON lines."""

import ast
import codecs
import csv
import functools
import gzip
import io
import pathlib
import tokenize
import zlib

from keras_attention.data.problems import report_problems
from keras_attention.files.io import parse_json, quote_value, read_bytes

PARAMETERS = "text_column", "label_column"  # a reader's arguments for the names of its columns


def read_lines(path, encoding="utf-8"):
    """Yield (line number, line) for each line of a text file, gzipped or not.

    Numbers start at 1. Lines are without their line ends. `encoding` is the name of the encoding in
    Python. The byte order mark of UTF-8 is removed. Raise a ValueError if the file cannot be
    decoded or decompressed.
    """
    codec = _find_codec(encoding)
    content = read_bytes(path)
    if content.startswith(b"\x1f\x8b"):
        try:
            content = gzip.decompress(content)
        except (EOFError, OSError, zlib.error) as error:
            raise ValueError(f"{path} is a broken gzip file: {error}.") from error
    try:
        text = content.decode(codec)
    except UnicodeError as error:
        raise _encoding_error(path, content, codec, error) from error
    # Not splitlines: text may contain characters that it also splits at, such as U+2028.
    for number, line in enumerate(text.split("\n"), start=1):
        yield number, line.removesuffix("\r")


def _find_codec(encoding):
    """Return Python's name for a text encoding. Raise a ValueError if the encoding is unknown."""
    try:
        codec = codecs.lookup(encoding)
        codec.decode(b"", "strict")[0] + ""
    except (LookupError, TypeError, ValueError) as error:
        raise ValueError(
            f"encoding={encoding!r}: expected an encoding of text that Python has, such as "
            "'utf-8', 'utf-16', 'latin-1', 'cp1252' (Windows, western Europe), 'gb18030' or "
            "'shift_jis'."
        ) from error
    return "utf-8-sig" if codec.name == "utf-8" else codec.name


def _encoding_error(path, content, codec, error):
    """Return a ValueError that names the byte outside the encoding, and suggests another one."""
    start = getattr(error, "start", 0)
    if codec == "utf-8-sig":
        utf_16 = content[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
        name, likely = "UTF-8", "utf-16" if utf_16 else "cp1252"
    else:
        name, likely = codec, "utf-8"
    return line_error(
        path,
        1 + content.count(b"\n", 0, start),
        f"not {name}: byte 0x{content[start]:02x} at position {start}. Name the encoding of the "
        f"file, such as encoding={likely!r}",
    )


def line_error(path, number, problem):
    """Return a ValueError about line `number` of the file `path`.

    `problem` is the rest of the message, a str or an exception.
    """
    return ValueError(f"{path}:{number}: {problem}.")


SEPARATORS = {".csv": ",", ".tsv": "\t"}
SUFFIXES = (*SEPARATORS, ".jsonl")


@report_problems
def read_columns(
    path, columns, encoding="utf-8", separator=None, parameters=PARAMETERS, *, problems=None
):
    """Read columns of a table, and return a list with a tuple of str for each row.

    - `.csv`: fields may be quoted and may contain line breaks.
    - `.tsv`: without quoting. Quotation marks are part of the text.
    - `.jsonl`: an object on each line. Integers are converted to str.

    Files may be gzipped and named `.csv.gz`. Empty lines are skipped, and spaces around values are
    removed. With a `separator`, the second value is a tuple of distinct str: the field split at
    separators, or a list in Python's or JSON's notation. In JSON lines, it must be a list.

    Args:
        path: path of the file.
        columns: two or more str, which are compared with the column names in the first row, or with
            the keys, ignoring case. Or ints, the indices of columns, starting at 0, in a file
            without column names.
        encoding: str, the name of the encoding in Python.
        separator: str, the separator of several values in the second of two columns. None if it has
            one value.
        parameters: a str for each column, the names of the arguments that an error about a missing
            column mentions.
        problems: `Problems`, which notes broken lines and empty fields with file and line number.
    """
    if len(columns) != len(parameters) or len({type(column) for column in columns}) != 1:
        count = "two" if len(parameters) == 2 else len(parameters)
        raise ValueError(f"columns={columns!r}: expected {count} names, or {count} numbers.")
    suffix = find_suffix(path)
    if suffix is None:
        raise name_error(path, "columns")
    read = _read_objects if suffix == ".jsonl" else _read_table
    rows = read(path, columns, encoding, separator, parameters, problems)
    if not rows and not problems:
        raise ValueError(f"{path} has no row.")
    return rows


def name_error(path, content, instead=""):
    """Return a ValueError: `path`, which should contain `content`, has an unexpected suffix.

    `instead` is a str that ends the message: what else `path` may be.
    """
    return ValueError(
        f"{path} is not a file of {content}: expected a name that ends in {', '.join(SUFFIXES)}, "
        f"gzipped (.gz) or not{instead}."
    )


def _read_objects(path, columns, encoding, separator, parameters, problems):
    objects = read_objects(path, encoding, problems)
    for column, parameter in zip(columns, parameters, strict=True):
        if objects and not any(find_name(column, list(content)) for _, content in objects):
            number, content = objects[0]
            raise _missing_name(_at(path, number), column, content, parameter)
    rows = ((c, columns, _at(path, n), separator, parameters) for n, c in objects)
    return problems.read_each(_of_object, rows)


def _missing_name(error, column, content, parameter):
    names = ", ".join(content)
    return error(f"no {column!r}, the object has {names}. Name its key with {parameter}=")


def find_suffix(path):
    """Return the suffix `.csv`, `.tsv` or `.jsonl` of `path`, or None for other files.

    A final `.gz` is ignored.
    """
    path = pathlib.Path(path)
    name = path.with_suffix("") if path.suffix == ".gz" else path
    return name.suffix if name.suffix in SUFFIXES else None


def _at(path, number):
    return functools.partial(line_error, path, number)


def read_rows(path, delimiter, encoding="utf-8"):
    """Yield (line number, fields) for each non-empty row of a table with this `delimiter`.

    The delimiter is `","` or a tab. Fields are a list of str. `encoding` is the name of the
    encoding in Python.
    """
    quoting = csv.QUOTE_MINIMAL if delimiter == "," else csv.QUOTE_NONE
    lines = (line + "\n" for _, line in read_lines(path, encoding))
    reader = csv.reader(lines, delimiter=delimiter, quoting=quoting, strict=True)
    try:
        for row in reader:
            if any(field.strip() for field in row):
                yield reader.line_num, row
    except csv.Error as problem:
        raise line_error(path, reader.line_num, f"not CSV: {problem}") from problem


def read_objects(path, encoding, problems):
    """Read a file with a JSON object on each line, and return a list of (line number, dict).

    Errors are collected in `problems`, a `Problems`. `encoding` is the name of the encoding in
    Python.
    """
    lines = [row for row in read_lines(path, encoding) if row[1].strip()]
    return problems.read_each(functools.partial(_parse_object, path), lines)


def _parse_object(path, number, line):
    def make(pairs):
        keys = [key for key, _ in pairs]
        if twice := [key for key in keys if keys.count(key) > 1]:
            raise ValueError(f"{twice[0]!r} is there {keys.count(twice[0])} times: expected once")
        return dict(pairs)

    try:
        content = parse_json(line, make)
    except ValueError as problem:
        raise line_error(path, number, f"not JSON: {problem}") from problem
    if not isinstance(content, dict):
        raise line_error(path, number, f"expected an object, found {line[:40]!r}")
    return number, content


def _read_table(path, columns, encoding, separator, parameters, problems):
    indices, width, rows = None, None, []
    for number, row in read_rows(path, SEPARATORS[find_suffix(path)], encoding):
        error = _at(path, number)
        if indices is None:
            indices = [_index(row, *pair, error) for pair in zip(columns, parameters, strict=True)]
            width = len(row)
            if isinstance(columns[0], str):  # the row of names
                continue
        with problems.note():
            if len(row) != width:
                raise error(f"found {len(row)} fields where the first row has {width}")
            rows.append(_strip_values(columns, [row[k] for k in indices], error, separator))
    return rows


def _index(first, column, parameter, error):
    """Return the index of `column`, a name or an int, in a table whose first row is `first`.

    `parameter` is the name of the argument to mention in an error. `error` is a function
    from a message to an error.
    """
    if isinstance(column, str):
        if len(first) == 1 and (separator := next((c for c in ";\t,|" if c in first[0]), None)):
            raise error(
                f"the first row is one field, {first[0][:40]!r}, with {separator!r} in it. Fields "
                "of .csv are separated by commas, those of .tsv by tabs: save or name the file so"
            )
        name = find_name(column, first)
        if name is None:
            raise error(
                f"no column {column!r}, the first row names {', '.join(first)}. Choose with "
                f"{parameter}= a name, or a number from 0 if no row names the columns"
            )
        check_once(name, first, error)
        return first.index(name)
    if not 0 <= column < len(first):
        raise error(f"no column {column}, counted from 0: the row has {len(first)}")
    return column


def find_name(column, names):
    """Return the name in `names` that equals `column` except for case.

    The result is None if no name or several names match.
    """
    if column in names:
        return column
    alike = [name for name in names if name.strip().casefold() == str(column).casefold()]
    return alike[0] if len(alike) == 1 else None


def has_column(path, column, encoding="utf-8"):
    """Return whether the first row of a table names `column`, or the first object has this key.

    `path` is a file of a format that `read_columns` reads, and `encoding` the name of the encoding
    in Python.
    """
    suffix = find_suffix(path)
    if suffix != ".jsonl":
        _, names = next(read_rows(path, SEPARATORS[suffix], encoding), (1, []))
        return find_name(column, names) is not None
    first = next((line for _, line in read_lines(path, encoding) if line.strip()), "{}")
    try:
        return find_name(column, list(dict(parse_json(first)))) is not None
    except (TypeError, ValueError):  # `read_columns` reports it
        return False


def check_once(name, names, error):
    """Raise a ValueError if the column `name` occurs more than once in `names`.

    `error` is a function from a message to an error.
    """
    if (times := names.count(name)) > 1:
        raise error(f"{times} columns are called {name!r}: rename or remove the others")


def _of_object(content, columns, error, separator, parameters):
    values = []
    for column, parameter in zip(columns, parameters, strict=True):
        name = find_name(column, list(content))
        if name is None:
            raise _missing_name(error, column, content, parameter)
        values.append(content[name])
    for column, value in zip(columns, values if separator is None else values[:1], strict=False):
        _check_value(column, value, error)
    if separator is None:
        return _strip_values(columns, values, error, separator)
    if not isinstance(values[1], list):
        raise error(f"{columns[1]!r} is {quote_value(values[1])}: expected a list of strings")
    else:
        _check_list(columns[1], values[1], error)
    return _strip_values(columns, values, error, separator)


def _check_list(name, values, error):
    for one in values:
        _check_value(name, one, error, "has", "only strings in a list of them")


def _check_value(name, value, error, verb="is", expected="a string"):
    """Raise an error for a JSON value that is neither a string nor an integer.

    `error` makes it from a message, `name` + `verb` + value + `expected`.
    """
    if not isinstance(value, str | int) or isinstance(value, bool):
        raise error(f"{name!r} {verb} {quote_value(value)}: expected {expected}")
    if isinstance(value, str) and any("\ud800" <= c <= "\udfff" for c in value):
        raise error(f"{name!r} has half of a pair of surrogates, not a character")


def _strip_values(columns, values, error, separator):
    """Remove spaces around values, and split the second at `separator` if that is not None.

    `columns` are their names, for error messages. `error` is a function from a message to an error.
    """
    if separator is None:
        return tuple(_strip(*pair, error) for pair in zip(columns, values, strict=True))
    first, second = values
    if not isinstance(second, list):
        second = _split(columns[1], str(second).strip(), error, separator)
    parts = tuple(_strip(columns[1], part, error) for part in second)
    if twice := [part for part in parts if parts.count(part) > 1]:
        raise error(f"{columns[1]!r} has {twice[0][:40]!r} more than once")
    return _strip(columns[0], first, error), parts


def _split(column, text, error, separator):
    """Split a field at separators, or parse it as a list in JSON or Python notation.

    `column` is the name of the column, for the message, and `error` a function from a message to an
    exception.
    """
    if not (text.startswith("[") and text.endswith("]")):
        return text.split(separator) if text else []
    values = _parse_list(text)
    if values is None:
        raise error(
            f"{column!r} is {text[:40]!r}: expected labels with {separator!r} between, or a list"
        )
    _check_list(column, values, error)
    return values


def _parse_list(text):
    try:
        return parse_json(text)
    except ValueError:
        pass  # it may be a list in Python's notation
    try:
        values = ast.literal_eval(text)
        tokens = [*tokenize.generate_tokens(io.StringIO(text).readline)]
    except (ValueError, SyntaxError, tokenize.TokenError, MemoryError, RecursionError):
        return None
    # NumPy prints lists without commas, and Python would join strings without commas between them.
    strings = sum(token.type == tokenize.STRING for token in tokens)
    return values if strings == sum(isinstance(value, str) for value in values) else None


def _strip(column, value, error):
    value = str(value).strip()
    if not value:
        raise error(f"{column!r} is empty")
    return value
