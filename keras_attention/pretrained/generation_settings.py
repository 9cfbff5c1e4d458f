"""`read_generation_settings`: how a checkpoint writes, by the files beside its weights."""

import dataclasses

from keras_attention.files.fields import MOST_BEAMS, MOST_ID, MOST_TOKENS, Fields
from keras_attention.pretrained.checkpoint import CONFIG, CheckpointError, read_content

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


def _read_fields(checkpoint):
    """Return the `Fields` of what `config.json` and `generation_config.json` say together."""
    path = checkpoint.folder / FILE
    written = read_content(path) if path.is_file() else {}
    values = checkpoint.config | {k: v for k, v in written.items() if v is not None}
    return Fields(
        path if written else checkpoint.folder / CONFIG, values, error_class=CheckpointError
    )


def read_generation_settings(checkpoint):
    """Return the `GenerationSettings` of a `Checkpoint`.

    Raises:
        CheckpointError: nothing says how a text ends, or a number is none.
    """
    fields, start, temperature = _read_fields(checkpoint), None, None
    if fields.get("is_encoder_decoder"):
        names = ("decoder_start_token_id", "bos_token_id", "pad_token_id")
        first = next((name for name in names if fields.get(name) is not None), names[0])
        start = _read_ids(fields, first)[0]
    if fields.get("do_sample") is True:
        temperature = fields.number("temperature", None, least=1e-6, most=1e6)
    constraints = {}
    if fields.get("forced_bos_token_id") is not None:
        constraints["forced_bos_token_id"] = _read_ids(fields, "forced_bos_token_id")[0]
    for name in ("suppress_tokens", "begin_suppress_tokens"):
        if fields.get(name):
            constraints[name] = _read_ids(fields, name)
    return GenerationSettings(
        end_token_ids=_read_ids(fields, "eos_token_id"),
        start_token_id=start,
        beam=fields.whole("num_beams", 1, most=MOST_BEAMS),
        length_penalty=float(fields.number("length_penalty", 1.0, least=-100, most=100)),
        temperature=temperature and float(temperature),
        min_length=fields.whole("min_length", 0, least=0, most=MOST_TOKENS),
        min_new_tokens=fields.whole("min_new_tokens", 0, least=0, most=MOST_TOKENS),
        no_repeat_ngram_size=fields.whole("no_repeat_ngram_size", 0, least=0, most=MOST_TOKENS)
        or None,
        **constraints,
    )


def read_speech_prompts(checkpoint):
    """Keywords of `ka.data.SpeechPrompt`: the tokens that say what Whisper writes.

    Raises:
        CheckpointError: `generation_config.json` does not say them, as in files before 2023.
    """
    fields = _read_fields(checkpoint)
    if fields.get("no_timestamps_token_id") is None:
        raise CheckpointError(
            f"{fields.path} does not say no_timestamps_token_id, the token that ends Whisper's "
            f"prompt: take {FILE} of the checkpoint of openai that this one was trained from."
        )
    found = {"no_timestamps_id": _read_ids(fields, "no_timestamps_token_id")[0]}
    for ours, theirs in (("languages", "lang_to_id"), ("tasks", "task_to_id")):
        needed = fields.get("is_multilingual", theirs in fields)
        ids = fields.get(theirs, {}) if needed else {}
        if not isinstance(ids, dict) or (fields.get("is_multilingual") and not ids):
            raise fields.error(theirs, "names and ids")
        inner = fields.part(ids)
        found[ours] = {name.strip("<|>"): inner.token_id(name) for name in ids}
    for name in ("language", "task"):
        if found[f"{name}s"] and isinstance(fields.get(name), str):
            found[name] = fields.get(name)
    found["tasks"] = dict(sorted(found["tasks"].items()))  # to transcribe comes first
    return found


def _read_ids(fields, name):
    """Return an id or a list of ids, as a tuple of different ones."""
    value = fields.get(name)
    ids = value if isinstance(value, list) else [value]
    if not ids or not all(type(i) is int and 0 <= i <= MOST_ID for i in ids):
        raise fields.error(name, "an id, or a list of ids")
    return tuple(dict.fromkeys(ids))
