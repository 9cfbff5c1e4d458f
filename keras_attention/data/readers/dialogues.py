"""Dialogues, turn by turn: from files, as pairs of a context and a reply, and as running text."""

import functools
import pathlib

from keras_attention.core.checks import check_whole_number
from keras_attention.data.dataset import DataSet
from keras_attention.data.problems import report_problems
from keras_attention.data.readers.columns import UTF_8, line_error, read_lines, read_objects
from keras_attention.data.readers.pairs import Pair
from keras_attention.data.splits import read_parts
from keras_attention.files.io import parse_json, quote_value

SEPARATOR = " <turn> "  # between two turns of a context
TURNS = 3  # that a reply is to at most, unless another number is asked for
YAML = (".yml", ".yaml")
LINES = (".jsonl", ".jsonl.gz")
ROLES = ("user", "assistant")  # of messages that are turns


class Dialogue(tuple):
    """The turns of a dialogue, str."""

    @classmethod
    def collect(cls, train=(), dev=(), test=(), *, dev_fraction=0.1, seed=0):
        """Return a `DataSet` from lists of dialogues. Without `dev`, some of train become it.

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
    """Pair every turn but the first of a dialogue, a reply, with up to `turns` before it.

    Args:
        data: `DataSet` of `Dialogue`.
        turns: int.

    Returns:
        A `DataSet` of `Pair`, for `ka.tasks.Seq2SeqLM`.
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
    """Join all turns of a `DataSet` of `Dialogue`, for `ka.tasks.CausalLM`.

    Returns:
        A `DataSet` of running text.
    """
    texts = ("".join(turn + SEPARATOR for d in part for turn in d) for part in data.parts.values())
    return DataSet(str, *texts, about={"dialogues": True})


def join_turns(turns, most):
    """Return the context of the next turn: the last `most` turns, oldest first."""
    return SEPARATOR.join(turns[-most:])


def _check(dialogue):
    """Return a `Dialogue` without a separator in them, or spaces around them."""
    if isinstance(dialogue, str) or not all(isinstance(turn, str) for turn in dialogue):
        raise ValueError(f"{dialogue!r:.60} is no dialogue: expected a list of its turns.")
    turns = tuple(" ".join(turn.replace(SEPARATOR.strip(), " ").split()) for turn in dialogue)
    if len(turns) < 2 or not all(turns):
        raise ValueError(
            f"{list(turns)!r:.60} is no dialogue: expected two turns or more, none of them empty."
        )
    return Dialogue(turns)


def from_dialogue_files(
    train=None, dev=None, test=None, *, dev_fraction=0.1, seed=0, encoding=UTF_8, on_error="raise"
):
    """Dialogues from files; the end of the name says what is in one.

    - `.jsonl`, gzipped or not: an object on each line with `turns`, a list of texts, or with
      `messages`, a list of objects with `role` and `content`, as chats of Hugging Face have them.
      Messages of other roles than `user` and `assistant`, such as `system`, are left out.
    - `.yml`: ChatterBot's, with a list of `conversations`, each a list of texts. Conversations
      of one turn, which its corpus has, are left out, and so are empty turns: in JSON lines both
      are errors.

    Args:
        train, dev, test: a path, a list of paths, or None.
        dev_fraction, seed, encoding, on_error: as in `ka.data.from_text_files`.

    Returns:
        A `DataSet` of `Dialogue`.

    A damaged file is a ValueError with the file, the place and what is wrong.

    ```python
    import json
    import pathlib
    import tempfile
    import keras_attention as ka

    path = pathlib.Path(tempfile.mkdtemp()) / "talk.jsonl"
    path.write_text(json.dumps({"turns": ["Hi!", "Hello.", "How are you?"]}) + "\\n")
    data = ka.data.from_dialogue_files(test=path)
    assert data.test == [("Hi!", "Hello.", "How are you?")]
    ```
    """
    read = functools.partial(read_dialogues, encoding=encoding)
    parts = read_parts(read, {"train": train, "dev": dev, "test": test}, on_error)
    return Dialogue.collect(**parts, dev_fraction=dev_fraction, seed=seed)


@report_problems
def read_dialogues(path, encoding=UTF_8, *, problems=None):
    """Return the dialogues of one file, a list of `Dialogue`. See `from_dialogue_files`."""
    name = pathlib.Path(path).name
    if name.endswith(YAML):
        dialogues = _read_yaml(path, problems, encoding)
    elif name.endswith(LINES):
        dialogues = _read_lines(path, problems, encoding)
    else:
        raise ValueError(
            f"{path} is no file of dialogues: expected a name that ends in .jsonl, gzipped (.gz) "
            "or not, or in .yml."
        )
    if not dialogues and not problems:
        raise ValueError(f"{path} holds no dialogue of two turns or more.")
    return dialogues


def holds_dialogues(path, encoding=UTF_8):
    """Return whether a file is one of dialogues.

    YAML of conversations, or JSON lines whose first object has turns, or a list of messages.
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
                return False  # and who reads it says what is wrong
            if not isinstance(first, dict):
                return False
            return "turns" in first or isinstance(first.get("messages"), list)
    return False


def _read_lines(path, problems, encoding):
    dialogues = []
    for number, content in read_objects(path, encoding, problems):
        with problems.note():
            turns = _find_turns(content, functools.partial(line_error, path, number))
            try:
                dialogues.append(_check(turns))
            except (ValueError, TypeError) as problem:
                raise ValueError(f"{path}:{number}: {problem}") from problem
    return dialogues


def _find_turns(content, error):
    """Return the turns of an object of JSON, a list: its own, or those of its messages."""
    if isinstance(content.get("turns"), list):
        return content["turns"]
    if not isinstance(content.get("messages"), list):
        raise error(
            "expected an object with turns, a list of texts, or messages, a list of objects with "
            "role and content"
        )
    turns = []
    for message in content["messages"]:
        fields = message if isinstance(message, dict) else {}
        role, text = fields.get("role"), fields.get("content")
        if not isinstance(role, str) or (role in ROLES and not isinstance(text, str)):
            raise error(
                f"messages has {quote_value(message)}: expected an object with a role and a text "
                "as its content"
            )
        turns += [text] if role in ROLES else []
    return turns


def _read_yaml(path, problems, encoding):
    """ChatterBot's; replies may be numbers, and a conversation of one turn is left out."""
    try:
        import yaml
    except ImportError as error:
        raise ImportError(
            "Dialogues in YAML are read by PyYAML, which is not installed: "
            "pip install 'keras-attention-zoo[nlp]'."
        ) from error
    text = "\n".join(line for _, line in read_lines(path, encoding))
    try:
        content = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ValueError(f"{path} is not valid YAML: {str(error).splitlines()[0]}.") from error
    conversations = content.get("conversations") if isinstance(content, dict) else None
    if not isinstance(conversations, list):
        raise ValueError(f"{path}: expected conversations, a list of lists of texts.")
    dialogues = []
    for number, turns in enumerate(conversations, start=1):
        if not isinstance(turns, list) or any(isinstance(turn, list | dict) for turn in turns):
            problem = f"conversation {number} is {quote_value(turns)}: expected a list of texts."
            with problems.note():
                raise ValueError(f"{path}: {problem}")
            continue
        turns = [str(turn) for turn in turns if turn is not None and str(turn).strip()]
        if len(turns) > 1:
            dialogues.append(_check(turns))
    return dialogues
