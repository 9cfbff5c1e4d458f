"""`TokenizerOwner`: what preprocessors share that have a tokenizer of words or of a checkpoint."""

from keras_attention.data.columns import Ragged
from keras_attention.data.tokenizers.building import load_own_tokenizer, name_kind
from keras_attention.data.tokenizers.pretrained import PretrainedTokenizer
from keras_attention.data.tokenizers.subwords import UNKNOWN_ID
from keras_attention.data.tokenizers.vocabulary import Labels, Vocabulary
from keras_attention.files.manifest import read_preprocessing, save_preprocessing

WORDS, TOKENS = "words.txt", "tokens"
SUBWORD = "subword_"  # in front of the kind where the tokenizer is a checkpoint's


class TokenizerOwner:
    """A preprocessor, a dataclass whose field `tokenizer` is saved with it.

    Attributes:
        tokenizer: a `ReadingTokenizer` or `WritingTokenizer` (`data/tokenizers/protocol.py`).
        kind: str, what a manifest calls a preprocessor of words.
    """

    kind = None

    @property
    def reads_words(self):
        """bool, whether the tokenizer is a vocabulary of words."""
        return isinstance(self.tokenizer, Vocabulary)

    @property
    def is_pretrained(self):
        """bool, whether the tokenizer is a checkpoint's."""
        return isinstance(self.tokenizer, PretrainedTokenizer)

    @property
    def padding_id(self):
        """int, the id after the end of a text."""
        return self.tokenizer.padding_id

    @property
    def vocabulary_size(self):
        """int, how many ids there are; None where a model may have room for more."""
        return self.tokenizer.vocabulary_size

    @property
    def unit(self):
        """str, what its limits count."""
        return self.tokenizer.unit

    def check_labels(self):
        """Makes `Labels` of the names of labels."""
        if not isinstance(self.labels, Labels):
            object.__setattr__(self, "labels", Labels(self.labels))

    def check_padding(self):
        """Refuses a tokenizer without padding."""
        if self.tokenizer.padding_id is None:
            raise ValueError(
                f"{type(self).__name__}: every id of this tokenizer is a token, and rows of a "
                "batch differ in length: it needs one for padding."
            )

    def as_inputs(self, ids):
        """Return what the model takes, of ids (B, T).

        With `"segment_ids"`, all 0, where it reads them.
        """
        return {"token_ids": ids, "segment_ids": ids * 0} if self.tokenizer.has_segments else ids

    def as_columns(self, rows):
        """Return the inputs of the model as columns, of a list of ids (T,)."""
        token_ids = Ragged(rows, self.padding_id)
        if not self.tokenizer.has_segments:
            return token_ids
        return {"token_ids": token_ids, "segment_ids": Ragged([row * 0 for row in rows], 0)}

    def describe_tokenizer(self):
        """Return the tokenizer's entries in a manifest, and the kind of the preprocessor."""
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
        """{file name: what has a `save`}, the files beside the manifest."""
        if self.is_pretrained:
            return self.tokenizer.parts()
        name = WORDS if self.reads_words else TOKENS + name_kind(self.tokenizer)[1]
        return {name: self.tokenizer}

    def save(self, folder):
        """Writes the tokenizer's files into `folder`, and its config into `manifest.json` there.

        Other entries of the manifest stay.
        """
        save_preprocessing(folder, self.config(), self.parts())

    @classmethod
    def load_tokenizer(cls, folder):
        """Return (`Fields` of what `config` gave, the tokenizer), from what `save` wrote."""
        config = read_preprocessing(folder, cls.kind, SUBWORD + cls.kind)
        if config.values["kind"] != cls.kind:
            return config, PretrainedTokenizer.load(folder, config.object("tokenizer"))
        if "tokens" in config.values:
            return config, load_own_tokenizer(config.object("tokens"))
        lowercase, split = config.flag("lowercase"), config.pattern("split", default=None)
        return config, Vocabulary.load(config.file("words"), lowercase, split)
