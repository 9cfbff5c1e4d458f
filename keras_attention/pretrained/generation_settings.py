"""`read_generation_settings`: reads the default settings for generation of a checkpoint."""

import dataclasses

from keras_attention.files.fields import MOST_BEAMS, MOST_ID, MOST_TOKENS, Fields
from keras_attention.pretrained.checkpoint import CONFIG, CheckpointError, read_content

FILE = "generation_config.json"


@dataclasses.dataclass(frozen=True)
class GenerationSettings:
    """The default settings for generation of a checkpoint.

    `forced_eos_token_id` is left out. It would only replace the last token of truncated output.

    Attributes:
        end_token_ids: tuple of int. Generation stops at any of these ids.
        start_token_id: int, the decoder's first token. None for a language model.
        beam: int, the number of beams. 1 is greedy search.
        length_penalty: float, the exponent of the length, as in Hugging Face.
        temperature: float, or None without sampling.
        forced_bos_token_id: int, the token after `start_token_id`, or None.
        suppress_tokens: tuple of int, ids that are never generated.
        begin_suppress_tokens: tuple of int, ids that are never generated first.
        min_length: int, the minimum length, with the tokens that start the decoder.
        min_new_tokens: int, the minimum number of new tokens.
        no_repeat_ngram_size: int, n-grams of this size never repeat. None allows them.
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

    def list_constraints(self, start_tokens):
        """Return a dict {Hugging Face's name: value} of the rules for forced or forbidden tokens.

        `start_tokens` is the number of tokens that start the decoder, which `min_length` includes.
        """
        return {
            "forced_bos_token_id": self.forced_bos_token_id,
            "suppress_tokens": self.suppress_tokens,
            "begin_suppress_tokens": self.begin_suppress_tokens,
            "no_repeat_ngram_size": self.no_repeat_ngram_size,
            "min_new_tokens": max(self.min_new_tokens, self.min_length - start_tokens),
        }


def _read_fields(checkpoint):
    """Return the settings in config.json, updated by generation_config.json, as `Fields`."""
    path = checkpoint.folder / FILE
    content = read_content(path) if path.is_file() else {}
    values = checkpoint.config | {k: v for k, v in content.items() if v is not None}
    path = path if content else checkpoint.folder / CONFIG
    return Fields(path, values, error_class=CheckpointError)


def read_generation_settings(checkpoint):
    """Read the `GenerationSettings` of a `Checkpoint` from JSON files.

    The settings are the defaults for generation that the checkpoint defines.
    """
    fields, start, temperature = _read_fields(checkpoint), None, None
    if fields.get("is_encoder_decoder"):
        names = ("decoder_start_token_id", "bos_token_id", "pad_token_id")
        first = next((name for name in names if fields.get(name) is not None), names[0])
        start = _read_ids(fields, first)[0]
    if fields.get("do_sample") is True:
        temperature = fields.number("temperature", None, least=1e-6, most=1e6)
    constraints = {
        name: _read_ids(fields, name)
        for name in ("suppress_tokens", "begin_suppress_tokens")
        if fields.get(name)
    }
    if fields.get("forced_bos_token_id") is not None:
        constraints["forced_bos_token_id"] = _read_ids(fields, "forced_bos_token_id")[0]
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
    """Return a dict with the arguments of `ka.data.SpeechPrompt` for a Whisper checkpoint.

    Files older than 2023, which do not name the ids of the prompt, raise a CheckpointError.
    """
    fields = _read_fields(checkpoint)
    if fields.get("no_timestamps_token_id") is None:
        raise CheckpointError(
            f"{fields.path} has no no_timestamps_token_id, the token that ends Whisper's prompt. "
            f"Copy {FILE} from the original checkpoint of OpenAI."
        )
    keywords = {"no_timestamps_id": _read_ids(fields, "no_timestamps_token_id")[0]}
    for ours, theirs in (("languages", "lang_to_id"), ("tasks", "task_to_id")):
        needed = fields.get("is_multilingual", theirs in fields)
        ids = fields.get(theirs, {}) if needed else {}
        if not isinstance(ids, dict) or (fields.get("is_multilingual") and not ids):
            raise fields.error(theirs, "names and ids")
        inner = fields.part(ids)
        keywords[ours] = {name.strip("<|>"): inner.token_id(name) for name in ids}
    for name in ("language", "task"):
        if keywords[f"{name}s"] and isinstance(fields.get(name), str):
            keywords[name] = fields.get(name)
    heads = fields.get("alignment_heads") or ()  # older files have null
    if not all(isinstance(pair, list) and len(pair) == 2 for pair in heads):
        raise fields.error("alignment_heads", "a list of pairs [layer, head]")
    keywords["alignment_heads"] = tuple(map(tuple, heads))
    keywords["tasks"] = dict(sorted(keywords["tasks"].items()))  # "transcribe" comes first
    return keywords


def _read_ids(fields, name):
    """Return the setting `name`, an id or a list of ids, as a tuple without duplicates."""
    value = fields.get(name)
    ids = value if isinstance(value, list) else [value]
    if not ids or not all(type(i) is int and 0 <= i <= MOST_ID for i in ids):
        raise fields.error(name, "an id, or a list of ids")
    return tuple(dict.fromkeys(ids))
