"""`TokenizerOwner`: base of preprocessors with a tokenizer."""

from keras_attention.data.columns import Ragged
from keras_attention.data.tokenizers.building import load_own_tokenizer, name_kind
from keras_attention.data.tokenizers.pretrained import PretrainedTokenizer
from keras_attention.data.tokenizers.subwords import UNKNOWN_ID
from keras_attention.data.tokenizers.vocabulary import Vocabulary
from keras_attention.files.manifest import read_preprocessing, save_preprocessing

WORDS, TOKENS = "words.txt", "tokens"
SUBWORD = "subword_"  # prefix of `kind` in manifests if the tokenizer is a checkpoint's


class TokenizerOwner:
    """Base class of preprocessors that save a tokenizer.

    Subclasses are dataclasses with a field `tokenizer`.

    Attributes:
        tokenizer: a `ReadingTokenizer` or `WritingTokenizer` (`data/tokenizers/protocol.py`).
        kind: str, the name of the preprocessor in manifests.
    """

    kind = None

    @property
    def reads_words(self):
        """bool, whether the tokenizer is a vocabulary of words."""
        return isinstance(self.tokenizer, Vocabulary)

    @property
    def is_pretrained(self):
        """bool, whether the tokenizer comes from a Hugging Face checkpoint."""
        return isinstance(self.tokenizer, PretrainedTokenizer)

    @property
    def padding_id(self):
        """int, the id that pads shorter rows."""
        return self.tokenizer.padding_id

    @property
    def vocabulary_size(self):
        """int, the number of ids, or None for a checkpoint, whose model may have more ids."""
        return self.tokenizer.vocabulary_size

    @property
    def unit(self):
        """str, the unit of length limits, such as `"words"`."""
        return self.tokenizer.unit

    def check_padding(self):
        """Raise a ValueError if the tokenizer has no id for padding."""
        if self.tokenizer.padding_id is None:
            raise ValueError(
                f"{type(self).__name__}: this tokenizer has no id for padding, which batches need."
            )

    def as_inputs(self, ids):
        """Return the model inputs for ids (B, T): the ids, or a dict with segment ids of 0 as well.

        The model of a checkpoint decides whether segment ids are necessary.
        """
        return {"token_ids": ids, "segment_ids": ids * 0} if self.tokenizer.has_segments else ids

    def as_columns(self, rows):
        """Convert `rows`, a list with the ids (T,) of each example, to columns for `Columns`."""
        token_ids = Ragged(rows, self.padding_id)
        if not self.tokenizer.has_segments:
            return token_ids
        return {"token_ids": token_ids, "segment_ids": Ragged([row * 0 for row in rows], 0)}

    def config(self):
        """Return the entry of `manifest.json` from which an app can preprocess in the same way."""
        if self.is_pretrained:
            return {"kind": SUBWORD + self.kind, "tokenizer": self.tokenizer.config()}
        ids = {"padding_id": self.tokenizer.padding_id, "unknown_id": UNKNOWN_ID}
        if not self.reads_words:
            kind, suffix = name_kind(self.tokenizer)
            return {"kind": self.kind, "tokens": {"kind": kind, "file": TOKENS + suffix}, **ids}
        return {
            "kind": self.kind,
            "words": WORDS,
            "lowercase": self.tokenizer.lowercase,
            **ids,
            "split": self.tokenizer.pattern,
        }

    def parts(self):
        """Return a dict from the names of the files to write to objects with a method `save`."""
        if self.is_pretrained:
            return self.tokenizer.parts()
        name = WORDS if self.reads_words else TOKENS + name_kind(self.tokenizer)[1]
        return {name: self.tokenizer}

    def save(self, folder):
        """Write the tokenizer's files into `folder`, and `config` into its `manifest.json`."""
        save_preprocessing(folder, self.config(), self.parts())

    @classmethod
    def load_tokenizer(cls, folder):
        """Load the files that `save` wrote, and return (`Fields` of `config`, the tokenizer).

        `folder` is the path of their folder.
        """
        config = read_preprocessing(folder, cls.kind, SUBWORD + cls.kind)
        if config.values["kind"] != cls.kind:
            return config, PretrainedTokenizer.load(folder, config.object("tokenizer"))
        if "tokens" in config.values:
            return config, load_own_tokenizer(config.object("tokens"))
        lowercase, split = config.flag("lowercase"), config.pattern("split", default=None)
        return config, Vocabulary.load(config.file("words"), lowercase, split)
