"""Dialogues: read from files, split into pairs of context and reply, or joined to running text."""

import functools
import pathlib

from keras_attention.core.checks import check_whole_number
from keras_attention.data.dataset import DataSet
from keras_attention.data.problems import report_problems
from keras_attention.data.readers.pairs import Pair
from keras_attention.data.readers.tables import line_error, read_lines, read_objects
from keras_attention.data.splits import read_parts
from keras_attention.files.io import parse_json, quote_value

SEPARATOR = " <turn> "  # between two turns in a context
TURNS = 3  # default for the maximum number of turns in a context
YAML = (".yml", ".yaml")
LINES = (".jsonl", ".jsonl.gz")
ROLES = ("user", "assistant")  # messages with other roles are left out


class Dialogue(tuple):
    """The turns of a dialogue, a tuple of str."""

    @classmethod
    def collect(cls, train=(), dev=(), test=(), *, dev_fraction=0.1, seed=0):
        """Make a `DataSet` from lists of dialogues for train, dev and test.

        If `dev` is empty, a random share `dev_fraction` of `train`, chosen by the int `seed`, is
        moved to it.

        ```python
        import keras_attention as ka

        dialogue = ("Hi!", "Hello.", "How are you?", "Fine.")
        data = ka.data.Dialogue.collect([dialogue], dev_fraction=0)
        pairs = ka.data.pair_dialogues(data, turns=2)
        assert pairs.train[0] == ("Hi!", "Hello.")
        assert pairs.train[2] == ("Hello. <turn> How are you?", "Fine.")
        text = ka.data.join_dialogues(data).train
        assert text == "Hi! <turn> Hello. <turn> How are you? <turn> Fine. <turn> "
        ```
        """
        parts = [[_check(dialogue) for dialogue in part] for part in (train, dev, test)]
        return DataSet.from_parts(cls, *parts, dev_fraction=dev_fraction, seed=seed)


def pair_dialogues(data, turns=TURNS):
    """Make a `DataSet` of `Pair` from `data`, a `DataSet` of `Dialogue`, for `Seq2SeqLM`.

    Each turn but the first becomes the target of one pair. The source is a str, the last `turns`
    turns before it (fewer at the beginning), joined by `" <turn> "`.
    """
    check_whole_number("pair_dialogues", "turns", turns)
    parts = [
        [
            Pair(join_turns(dialogue[:k], turns), dialogue[k])
            for dialogue in part
            for k in range(1, len(dialogue))
        ]
        for part in data.parts.values()
    ]
    return DataSet(Pair, *parts, about={"turns": turns})


def join_dialogues(data):
    """Convert `data`, a `DataSet` of `Dialogue`, to a `DataSet` of running text, for `CausalLM`."""
    texts = ("".join(turn + SEPARATOR for d in part for turn in d) for part in data.parts.values())
    return DataSet(str, *texts, about={"dialogues": True})


def join_turns(turns, most):
    """Join the last `most` turns of a dialogue to a str, the model input for the next turn."""
    return SEPARATOR.join(turns[-most:])


def _check(dialogue):
    """Make a `Dialogue` from a list of str, without separators and repeated spaces in its turns."""
    if isinstance(dialogue, str) or not all(isinstance(turn, str) for turn in dialogue):
        raise ValueError(f"{dialogue!r:.60} is not a dialogue: expected a list of its turns.")
    turns = tuple(" ".join(turn.replace(SEPARATOR.strip(), " ").split()) for turn in dialogue)
    if len(turns) < 2 or not all(turns):
        raise ValueError(
            f"{list(turns)!r:.60} is not a dialogue: expected two or more turns with text in each."
        )
    return Dialogue(turns)


def from_dialogue_files(
    train=None, dev=None, test=None, *, dev_fraction=0.1, seed=0, encoding="utf-8", on_error="raise"
):
    """Read a `DataSet` of `Dialogue` from files.

    - `.jsonl`, gzipped or not: an object on each line with `turns`, a list of strings, or with
      `messages`, a list of objects with `role` and `content`, as in chat datasets on Hugging Face.
      Only messages with the role `user` or `assistant` become turns.
    - `.yml`: ChatterBot's files, with a list of `conversations`. Each conversation is a list of
      strings. Conversations with only one turn and empty turns are left out. In JSON lines, both
      are errors.

    Raise a ValueError with file and place for broken dialogues.

    Args:
        train, dev, test: a path, a list of paths, or None.
        dev_fraction: float, the share of train that becomes dev if `dev` is None.
        seed: int, for the random choice of these examples.
        encoding: str, the name of the encoding in Python, such as `"cp1252"`.
        on_error: `"raise"` an error for broken examples, or `"skip"` them with a warning.

    ```python
    import json
    import pathlib
    import keras_attention as ka

    path = pathlib.Path("talk.jsonl")
    path.write_text(json.dumps({"turns": ["Hi!", "Hello.", "How are you?"]}) + "\\n")
    data = ka.data.from_dialogue_files(test=path)
    assert data.test == [("Hi!", "Hello.", "How are you?")]
    ```
    """
    parts = read_parts(read_dialogues, train, dev, test, on_error, encoding=encoding)
    return Dialogue.collect(**parts, dev_fraction=dev_fraction, seed=seed)


@report_problems
def read_dialogues(path, encoding="utf-8", *, problems=None):
    """Read one file of dialogues, and return a list of `Dialogue`.

    Errors are collected in `problems`, a `Problems`. If it is None, they are raised together as one
    error. `encoding` is the name of the encoding in Python.
    """
    name = pathlib.Path(path).name
    if name.endswith(YAML):
        dialogues = _read_yaml(path, problems, encoding)
    elif name.endswith(LINES):
        dialogues = _read_lines(path, problems, encoding)
    else:
        raise ValueError(
            f"{path} is not a file of dialogues: expected a name that ends in .jsonl, gzipped "
            "(.gz) or not, or in .yml."
        )
    if not dialogues and not problems:
        raise ValueError(f"{path} holds no dialogue of two turns or more.")
    return dialogues


def holds_dialogues(path, encoding="utf-8"):
    """Return whether the file `path` contains dialogues.

    `encoding` is the name of the encoding in Python. The result is True for YAML with
    conversations, and for JSON lines whose first object has turns or a list of messages.
    """
    name = pathlib.Path(path).name
    if name.endswith(YAML):
        return any(line.startswith("conversations") for _, line in read_lines(path, encoding))
    if not name.endswith(LINES):
        return False
    for _, line in read_lines(path, encoding):
        if line.strip():
            try:
                first = parse_json(line)
            except ValueError:
                return False  # the reader of the file reports the error
            if not isinstance(first, dict):
                return False
            return "turns" in first or isinstance(first.get("messages"), list)
    return False


def _read_lines(path, problems, encoding):
    def read(number, content):
        turns = _find_turns(content, functools.partial(line_error, path, number))
        try:
            return _check(turns)
        except (ValueError, TypeError) as problem:
            raise ValueError(f"{path}:{number}: {problem}") from problem

    return problems.read_each(read, read_objects(path, encoding, problems))


def _find_turns(content, error):
    """Return the turns in a JSON object: its `turns`, or the `content` of its `messages`.

    `error` is a function from a message to an error.
    """
    if isinstance(content.get("turns"), list):
        return content["turns"]
    if not isinstance(content.get("messages"), list):
        raise error(
            "expected an object with turns, a list of str, or messages with role and content"
        )
    turns = []
    for message in content["messages"]:
        fields = message if isinstance(message, dict) else {}
        role, text = fields.get("role"), fields.get("content")
        if not isinstance(role, str) or (role in ROLES and not isinstance(text, str)):
            raise error(
                f"messages has {quote_value(message)}: expected an object with role and content"
            )
        turns += [text] if role in ROLES else []
    return turns


def _read_yaml(path, problems, encoding):
    """Read ChatterBot's conversations from a YAML file. A reply may be a number in the file."""
    try:
        import yaml
    except ImportError as error:
        raise ImportError(
            "Dialogues in YAML need PyYAML, which is not installed: "
            "pip install 'keras-attention-zoo[nlp]'."
        ) from error
    text = "\n".join(line for _, line in read_lines(path, encoding))
    try:
        content = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ValueError(f"{path} is not valid YAML: {str(error).splitlines()[0]}.") from error
    conversations = content.get("conversations") if isinstance(content, dict) else None
    if not isinstance(conversations, list):
        raise ValueError(f"{path}: expected conversations, a list of lists of str.")
    dialogues = []
    for number, turns in enumerate(conversations, start=1):
        if not isinstance(turns, list) or any(isinstance(turn, list | dict) for turn in turns):
            problem = f"conversation {number} is {quote_value(turns)}: expected a list of str."
            with problems.note():
                raise ValueError(f"{path}: {problem}")
            continue
        turns = [str(turn) for turn in turns if turn is not None and str(turn).strip()]
        if len(turns) > 1:
            dialogues.append(_check(turns))
    return dialogues
