"""`read_generation_settings`: how a checkpoint writes, by the files beside its weights."""

import dataclasses

from keras_attention.files.fields import MOST_BEAMS, MOST_ID, MOST_TOKENS
from keras_attention.files.io import read_json
from keras_attention.pretrained.checkpoint import CONFIG, CheckpointError

FILE = "generation_config.json"


@dataclasses.dataclass(frozen=True)
class GenerationSettings:
    """How a model writes, where nothing else is asked for.

    Attributes:
        end_token_ids: tuple of ints, any of which ends a text.
        start_token_id: int, what a decoder begins with; None for a language model.
        beam: int, how many texts the search holds; 1 is greedy.
        length_penalty: float, of beams, of Hugging Face: the power of a text's length.
        temperature: float, or None where tokens are not drawn.
        forced_bos_token_id: int, the first token of every text, after `start_token_id`; or None.
        suppress_tokens: tuple of ints, which are never written.
        begin_suppress_tokens: tuple of ints, which are never written first.
        min_length: int, how many tokens there are before a text may end, with those that its
            decoder began with.
        min_new_tokens: int, the same without those.
        no_repeat_ngram_size: int, how many tokens in a row no text has twice; None for no limit.

    `forced_eos_token_id` only replaces the last token of a text that is cut off, and is not read.
    """

    end_token_ids: tuple
    start_token_id: int | None
    beam: int
    length_penalty: float
    temperature: float | None
    forced_bos_token_id: int | None = None
    suppress_tokens: tuple = ()
    begin_suppress_tokens: tuple = ()
    min_length: int = 0
    min_new_tokens: int = 0
    no_repeat_ngram_size: int | None = None

    def name_constraints(self, start_tokens):
        """The keywords of a task that writes, for a decoder that begins with so many tokens."""
        names = "forced_bos_token_id suppress_tokens begin_suppress_tokens no_repeat_ngram_size"
        least = max(self.min_new_tokens, self.min_length - start_tokens)
        return {name: getattr(self, name) for name in names.split()} | {"min_new_tokens": least}


def _read_said(checkpoint):
    """(what errors call the file, what it and `config.json` say, a dict)."""
    path = checkpoint.folder / FILE
    try:
        said = read_json(path) if path.is_file() else {}
    except ValueError as error:
        raise CheckpointError(f"{path} is damaged: {error}") from error
    if not isinstance(said, dict):
        raise CheckpointError(f"{path} is damaged: expected a JSON object.")
    name = path if said else checkpoint.folder / CONFIG
    known = (checkpoint.config, said)
    return name, {k: v for source in known for k, v in source.items() if v is not None}


def read_generation_settings(checkpoint):
    """The `GenerationSettings` of a `Checkpoint`.

    Raises:
        CheckpointError: nothing says how a text ends, or a number is none.
    """
    name, said = _read_said(checkpoint)
    writes_for_texts = bool(said.get("is_encoder_decoder"))
    start = None
    if writes_for_texts:
        begin = ("decoder_start_token_id", "bos_token_id", "pad_token_id")
        start = _read_ids(name, said, *begin)[0]
    drawn = said.get("do_sample") is True and "temperature" in said
    return GenerationSettings(
        end_token_ids=_read_ids(name, said, "eos_token_id"),
        start_token_id=start,
        beam=_read_number(name, said, "num_beams", 1, int, 1, MOST_BEAMS),
        length_penalty=_read_number(name, said, "length_penalty", 1.0, float, -100, 100),
        temperature=_read_number(name, said, "temperature", None, float, 1e-6, 1e6)
        if drawn
        else None,
        **_read_constraints(name, said),
    )


def read_speech_prompts(checkpoint):
    """Keywords of `ka.data.SpeechPrompt`: the tokens that say what Whisper writes.

    Raises:
        CheckpointError: `generation_config.json` does not say them, as in files before 2023.
    """
    path, said = _read_said(checkpoint)
    if "no_timestamps_token_id" not in said:
        raise CheckpointError(
            f"{path} does not say no_timestamps_token_id, the token that ends Whisper's prompt: "
            f"take {FILE} of the checkpoint of openai that this one was trained from."
        )
    found = {"no_timestamps_id": _read_ids(path, said, "no_timestamps_token_id")[0]}
    for ours, theirs in (("languages", "lang_to_id"), ("tasks", "task_to_id")):
        ids = said.get(theirs, {}) if said.get("is_multilingual", theirs in said) else {}
        right = isinstance(ids, dict) and all(
            type(i) is int and 0 <= i <= MOST_ID for i in ids.values()
        )
        if not right or (said.get("is_multilingual") and not ids):
            raise CheckpointError(f"{path} says {theirs}={ids!r:.60}: expected names and ids.")
        found[ours] = {name.strip("<|>"): i for name, i in ids.items()}
    for name in ("language", "task"):
        if found[f"{name}s"] and isinstance(said.get(name), str):
            found[name] = said[name]
    found["tasks"] = dict(sorted(found["tasks"].items()))  # to transcribe comes first
    return found


def _read_constraints(path, said):
    """What may be written and what may not, by the names of Hugging Face, where it is said."""
    found = {}
    if "forced_bos_token_id" in said:
        (found["forced_bos_token_id"],) = _read_ids(path, said, "forced_bos_token_id")[:1]
    for name in ("suppress_tokens", "begin_suppress_tokens"):
        if said.get(name):
            found[name] = _read_ids(path, said, name)
    for name in ("min_length", "min_new_tokens"):
        found[name] = _read_number(path, said, name, 0, int, 0, MOST_TOKENS)
    size = _read_number(path, said, "no_repeat_ngram_size", 0, int, 0, MOST_TOKENS)
    return found | {"no_repeat_ngram_size": size or None}


def _read_ids(path, said, *names):
    """The ids under the first of the names that is there."""
    found = next((said[name] for name in names if name in said), None)
    ids = found if isinstance(found, list) else [found]
    if not ids or not all(type(i) is int and 0 <= i <= MOST_ID for i in ids):
        raise CheckpointError(
            f"{path} says {names[0]}={found!r:.60}: expected an id, or a list of ids."
        )
    return tuple(dict.fromkeys(ids))


def _read_number(path, said, name, default, kind, least, most):
    value = said.get(name, default)
    right = type(value) is int or (kind is float and type(value) is float)
    if not right or not least <= value <= most:
        raise CheckpointError(f"{path} says {name}={value!r:.60}: expected a number.")
    return kind(value)
