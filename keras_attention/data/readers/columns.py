"""Lines of text files, and rows of those with columns: CSV, TSV and JSON lines."""

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

UTF_8 = "utf-8"
PARAMETERS = "text_column", "label_column"  # of a reader, which name its two columns


def read_lines(path, encoding=UTF_8):
    """Yields (line number from 1, line without its end) of a text file, gzipped or not.

    Args:
        encoding: str, as Python names it; the mark that some programs put in front of UTF-8 goes.
    """
    codec = _find_codec(encoding)
    content = _bytes(path)
    try:
        text = content.decode(codec)
    except UnicodeError as error:
        raise _encoding_error(path, content, codec, error) from error
    # Not splitlines: words may hold the separators of other alphabets, such as U+2028.
    for number, line in enumerate(text.split("\n"), start=1):
        yield number, line.removesuffix("\r")


def _find_codec(encoding):
    """Return the codec's name; an error where Python has none of this name that makes text of
    bytes.
    """
    try:
        codec = codecs.lookup(encoding)
        codec.decode(b"", "strict")[0] + ""
    except (LookupError, TypeError, ValueError) as error:
        raise ValueError(
            f"encoding={encoding!r}: Python knows no such encoding of text. Common ones are "
            "'utf-8', 'utf-16', 'latin-1', 'cp1252' (Windows, western Europe), 'gb18030' and "
            "'shift_jis'."
        ) from error
    return "utf-8-sig" if codec.name == UTF_8 else codec.name


def _encoding_error(path, content, codec, error):
    """Says which byte of a file is none of its encoding, and how to name another one."""
    start = getattr(error, "start", 0)
    number = 1 + content.count(b"\n", 0, start)
    name = "UTF-8" if codec == "utf-8-sig" else codec
    likely = "utf-16" if content[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) else "cp1252"
    mend = "Name the encoding of the file, such as" if name == "UTF-8" else "Name another encoding:"
    other = likely if name == "UTF-8" else UTF_8
    return line_error(
        path,
        number,
        f"not {name}: byte 0x{content[start]:02x} at position {start}. {mend} encoding={other!r}",
    )


def line_error(path, number, problem):
    """Return the error for line `number` of the file `path`."""
    return ValueError(f"{path}:{number}: {problem}.")


def _bytes(path):
    content = read_bytes(path)
    if not content.startswith(b"\x1f\x8b"):
        return content
    try:
        return gzip.decompress(content)
    except (EOFError, OSError, zlib.error) as error:
        raise ValueError(f"{path} is a broken gzip file: {error}.") from error


SEPARATORS = {".csv": ",", ".tsv": "\t"}
SUFFIXES = (*SEPARATORS, ".jsonl")


@report_problems
def read_columns(
    path, columns, encoding=UTF_8, separator=None, parameters=PARAMETERS, *, problems=None
):
    """Return the values of `columns`, a tuple of str or of int, in each row.

    A list of tuples of str.

    - `.csv`: fields may be quoted and hold line breaks.
    - `.tsv`: nothing is quoted; a quotation mark is text.
    - `.jsonl`: an object on each line.

    The file may be gzipped and named `.csv.gz`. Names are those of the first row, or the keys of
    the objects; numbers count columns from 0, in a file whose first row names nothing. Spaces
    around a text go. A whole number in JSON is taken as it is written.

    With a `separator` the second of the values is a tuple of different str, which may be empty: the
    parts of a text between separators, or of a list as Python or JSON writes it; in JSON lines a
    list, and nothing else.

    A broken line, or an empty field, is noted in `problems` (`Problems`), with the file, the line
    number and what is wrong. Names of columns match whatever their case. The error about a column
    that is not there names the parameter for it: `parameters`, a str for each. Empty lines are left
    out.
    """
    if len(columns) != 2 or type(columns[0]) is not type(columns[1]):
        raise ValueError(f"columns={columns!r}: expected two names, or two numbers.")
    suffix = find_suffix(path)
    if suffix is None:
        raise ValueError(
            f"{path} is no file of columns: expected a name that ends in {', '.join(SUFFIXES)}, "
            "gzipped (.gz) or not."
        )
    if suffix == ".jsonl":
        rows, objects = [], read_objects(path, encoding, problems)
        _check_names(path, objects, columns, parameters)
        for number, content in objects:
            with problems.note():
                rows.append(_of_object(content, columns, _at(path, number), separator, parameters))
    else:
        delimiter = SEPARATORS[suffix]
        rows = _of_table(path, delimiter, columns, problems, encoding, separator, parameters)
    if not rows and not problems:
        raise ValueError(f"{path} holds no row.")
    return rows


def _check_names(path, objects, columns, parameters):
    """Refuse a file of objects that all lack a column."""
    for column, how in zip(columns, parameters, strict=True):
        if objects and not any(find_name(column, list(content)) for _, content in objects):
            number, content = objects[0]
            raise _missing_name(_at(path, number), column, content, how)


def _missing_name(error, column, content, parameter):
    names = ", ".join(content)
    return error(f"no {column!r}; the object has {names}. Say which it is, with {parameter}=")


def find_suffix(path):
    """Return `.csv`, `.tsv` or `.jsonl`, as the name of a file says, or None."""
    path = pathlib.Path(path)
    name = path.with_suffix("") if path.suffix == ".gz" else path
    return name.suffix if name.suffix in SUFFIXES else None


def _at(path, number):
    return functools.partial(line_error, path, number)


def read_rows(path, delimiter, encoding=UTF_8):
    """Yield (line number, fields) of each row of a table that is not empty."""
    quoting = csv.QUOTE_MINIMAL if delimiter == "," else csv.QUOTE_NONE
    lines = (line + "\n" for _, line in read_lines(path, encoding))
    reader = csv.reader(lines, delimiter=delimiter, quoting=quoting, strict=True)
    try:
        for row in reader:
            if any(field.strip() for field in row):
                yield reader.line_num, row
    except csv.Error as problem:
        raise line_error(path, reader.line_num, f"no CSV: {problem}") from problem


def read_objects(path, encoding, problems):
    """Return (line number, dict) of each line of JSON that is an object."""
    objects = []
    for number, line in read_lines(path, encoding):
        if line.strip():
            with problems.note():
                objects.append((number, _parse_object(line, _at(path, number))))
    return objects


def _parse_object(line, error):
    try:
        content = parse_json(line, _make_object)
    except ValueError as problem:
        raise error(f"no JSON: {problem}") from problem
    if not isinstance(content, dict):
        raise error(f"expected an object, found {line[:40]!r}")
    return content


def _of_table(path, delimiter, columns, problems, encoding, separator, parameters):
    where, width, rows = None, None, []
    for number, row in read_rows(path, delimiter, encoding):
        error = _at(path, number)
        if where is None:
            where = [_index(row, *pair, error) for pair in zip(columns, parameters, strict=True)]
            width = len(row)
            if isinstance(columns[0], str):  # the row of names
                continue
        with problems.note():
            if len(row) != width:
                raise error(f"found {len(row)} fields where the first row has {width}")
            rows.append(_filled(columns, [row[k] for k in where], error, separator))
    return rows


def _index(first, column, parameter, error):
    """Return where `column` is in a table whose first row is `first`.

    `parameter` names it.
    """
    if isinstance(column, str):
        if len(first) == 1 and (separator := next((c for c in ";\t,|" if c in first[0]), None)):
            raise error(
                f"the first row is one field, {first[0][:40]!r}, with {separator!r} in it, where "
                ".csv has commas between fields and .tsv has tabs: save the file or name it so"
            )
        name = find_name(column, first)
        if name is None:
            raise error(
                f"no column {column!r}; the first row names {', '.join(first)}. Say which it is, "
                f"with {parameter}=: a name, or a number from 0 where no row names the columns"
            )
        check_once(name, first, error)
        return first.index(name)
    if not 0 <= column < len(first):
        raise error(f"no column {column}, counted from 0; the row has {len(first)}")
    return column


def find_name(column, names):
    """Find `column` among `names`, whatever its case; None where it is not there, or twice."""
    if column in names:
        return column
    alike = [name for name in names if name.strip().casefold() == str(column).casefold()]
    return alike[0] if len(alike) == 1 else None


def check_once(name, names, error):
    """Refuse two columns of the name that is asked for."""
    if (times := names.count(name)) > 1:
        raise error(
            f"{times} columns are called {name!r}: give them different names, or remove the others"
        )


def _of_object(content, columns, error, separator, parameters):
    names = [find_name(column, list(content)) for column in columns]
    for name, column, how in zip(names, columns, parameters, strict=True):
        if name is None:
            raise _missing_name(error, column, content, how)
    values = [content[name] for name in names]
    for k, (name, value) in enumerate(zip(columns, values, strict=True)):
        if k == 0 or separator is None:
            _check_value(name, value, error)
        elif not isinstance(value, list):
            raise error(f"{name!r} is {quote_value(value)}: expected a list of strings")
        else:
            _check_list(name, value, error)
    return _filled(columns, values, error, separator)


def _make_object(pairs):
    """Make a dict of the pairs of a JSON object. Refuse a key that is there twice."""
    keys = [key for key, _ in pairs]
    if twice := [key for key in keys if keys.count(key) > 1]:
        raise ValueError(f"{twice[0]!r} is there {keys.count(twice[0])} times: expected once")
    return dict(pairs)


def _check_list(name, values, error):
    for one in values:
        _check_value(name, one, error, "has", "only strings in a list of them")


def _check_value(name, value, error, verb="is", expected="a string"):
    """Refuses a value of JSON that is no text."""
    if not isinstance(value, str | int) or isinstance(value, bool):
        raise error(f"{name!r} {verb} {quote_value(value)}: expected {expected}")
    if isinstance(value, str) and any("\ud800" <= c <= "\udfff" for c in value):
        raise error(f"{name!r} holds half of a pair of surrogates, which is no character")


def _filled(columns, values, error, separator=None):
    """Return the values without spaces around them; of the second, where it is split, the parts."""
    first, second = values
    if separator is None:
        return _strip(columns[0], first, error), _strip(columns[1], second, error)
    if not isinstance(second, list):
        second = _split(columns[1], str(second).strip(), error, separator)
    parts = tuple(_strip(columns[1], part, error) for part in second)
    if twice := [part for part in parts if parts.count(part) > 1]:
        raise error(f"{columns[1]!r} has {twice[0][:40]!r} more than once")
    return _strip(columns[0], first, error), parts


def _split(column, text, error, separator):
    """Return the parts of a field.

    Those between separators, or of a list as JSON or Python writes it.
    """
    if not (text.startswith("[") and text.endswith("]")):
        return text.split(separator) if text else []
    values = _parse_list(text)
    if values is None:
        raise error(
            f"{column!r} is {text[:40]!r}: expected labels with {separator!r} between them, or a "
            "list of JSON or Python, of strings with commas between them"
        )
    _check_list(column, values, error)
    return values


def _parse_list(text):
    try:
        return parse_json(text)
    except ValueError:
        pass  # it may be Python's
    try:
        values = ast.literal_eval(text)
        tokens = [*tokenize.generate_tokens(io.StringIO(text).readline)]
    except (ValueError, SyntaxError, tokenize.TokenError, MemoryError, RecursionError):
        return None
    # NumPy writes no commas, and Python joins strings that have none between them.
    strings = sum(token.type == tokenize.STRING for token in tokens)
    return values if strings == sum(isinstance(value, str) for value in values) else None


def _strip(column, value, error):
    value = str(value).strip()
    if not value:
        raise error(f"{column!r} is empty")
    return value
