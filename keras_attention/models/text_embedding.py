"""`TextEmbedding`: the inputs of a text and its first vectors, as a part of builders."""

import dataclasses

import keras

from keras_attention import positions
from keras_attention.attention.projection import copy_initializer
from keras_attention.blocks import (
    CharacterEmbedding,
    PositionsInDocuments,
    PrefixTokens,
    SegmentEmbedding,
    TokenDropout,
    TokenEmbedding,
    WordEmbedding,
)
from keras_attention.blocks.inner_layers import copy_part
from keras_attention.blocks.normalization import NORMALIZATIONS

MATCHES = 3  # kinds of them


@dataclasses.dataclass(frozen=True)
class Characters:
    """The spelling of words beside their ids (Ma and Hovy, 2016, section 2.3).

    Args:
        vocabulary_size: int, number of character ids.
        word_length: int C, characters of a word that are looked at.
        dim, filters, widths: as `hidden_dim`, `filters` and `widths` of `CharacterEmbedding`.
    """

    vocabulary_size: int
    word_length: int = 16
    dim: int = 32
    filters: int = 64
    widths: tuple = (2, 3, 4)


@dataclasses.dataclass(frozen=True, kw_only=True)
class TextEmbedding:
    """What builders of texts do before their encoder: they read ids and embed them.

    The sizes, the dropout and the position are those of the builder, which calls the part. An
    embedding of your own has the same two methods.

    Args:
        num_segments: int, kinds of segments, such as 2 for pairs of sentences, or None for none.
        exact_match: bool, whether an input tells which words of a pair of texts are in the other
            text, too (Chen et al., 2017, *Reading Wikipedia*, section 3.2).
        characters: `Characters`, or None for words only.
        embedding_dim: int, the width of the tokens' vectors, where it is not that of the model
            (Lan et al., 2020, *ALBERT*, section 3.1): a projection follows; or None.
        normalization: `"layer_norm"`, `"layer_norm_no_bias"` or `"rms_norm"`, of the sum of all
            vectors (Devlin et al., 2019); None for none. epsilon: float, of it.
        scale: bool, whether tokens are multiplied by √D (Vaswani et al., 2017, section 3.4):
            without it they start small beside `"sinusoidal"` positions. None leaves it to the
            builder: encoder-decoders do.
        token_dropout: float, the share of tokens that become unknown in training. unknown_id: int,
            the id that they become.
        class_token: bool, whether a learned token of no text stands in front of each row.
        packed: bool, whether rows hold several documents each: an input tells them apart, so that
            tokens see their own document only and count from its first token.
        padding_id: int, the id that is no token and is masked inside; None where every id is one.
        padding: as in `TokenEmbedding`, a promise about the ids of every call. Give the attention
            of the encoder `padding="right"`, too.
        logit_bias: bool, whether logits by the tokens' vectors have a bias (Marian).
        logit_scale: float, by which these logits are multiplied (T5: `hidden_dim**-0.5`).
        logit_soft_cap: float above 0, or None. Logits become `cap · tanh(logits / cap)` (Gemma 2,
            2024, section 2). For attention there is `Softmax(soft_cap=...)`.

    Example:

    ```python
    import keras
    import keras_attention as ka

    embedding = ka.models.TextEmbedding(num_segments=2, normalization="layer_norm")
    inputs = embedding.inputs()
    assert list(inputs) == ["token_ids", "segment_ids"]
    x, documents, tokens = embedding(inputs, 100, 16, position="sinusoidal")
    assert x.shape == (None, None, 16) and documents == {} and tokens.vocabulary_size == 100
    ```
    """

    num_segments: int | None = None
    exact_match: bool = False
    characters: Characters | None = None
    embedding_dim: int | None = None
    normalization: str | None = None
    epsilon: float = 1e-6
    scale: bool | None = None
    token_dropout: float = 0.0
    unknown_id: int = 1
    class_token: bool = False
    packed: bool = False
    padding_id: int | None = 0
    padding: str | None = None
    logit_bias: bool = False
    logit_scale: float = 1.0
    logit_soft_cap: float | None = None

    @classmethod
    def of_bert(cls, num_segments=2, *, epsilon=1e-12, padding_id=0):
        """Make the embedding of BERT (Devlin et al., 2019): segments, a norm, biases of logits."""
        return cls(
            num_segments=num_segments,
            normalization="layer_norm",
            epsilon=epsilon,
            padding_id=padding_id,
            logit_bias=True,
        )

    def __post_init__(self):
        if self.class_token and self.num_segments is not None:
            raise ValueError(
                f"TextEmbedding(class_token=True, num_segments={self.num_segments}): the token in "
                "front has no segment. Begin texts with a token of your own, and read it with "
                "pooling='first'."
            )
        if self.class_token and self.packed:
            raise ValueError(
                "TextEmbedding(class_token=True, packed=True): a row has several documents, and one"
                " token in front. Leave one of them out."
            )

    def inputs(self, side=None):
        """Make the inputs of a model, a dict of symbolic int32 tensors.

        Args:
            side: `"source"` or `"target"` of an encoder-decoder, whose inputs are then called
                `"source_ids"` and `"source_document_ids"`, or None.

        Returns:
            `"token_ids"` (B, T); with `characters` `"character_ids"` (B, T, C); with `exact_match`
            `"exact_match"` (B, T); with `num_segments` `"segment_ids"` (B, T), from 0; `packed`
            `"document_ids"` (B, T), the number of each token's document, 1, 2, ..., and 0 for
            padding.
        """
        shapes = {"token_ids": (None,)}
        if self.characters is not None:
            shapes["character_ids"] = (None, self.characters.word_length)
        if self.exact_match:
            shapes["exact_match"] = (None,)
        if self.num_segments is not None:
            shapes["segment_ids"] = (None,)
        if self.packed:
            shapes["document_ids"] = (None,)
        names = {name: name if side is None else f"{side}_{name}" for name in shapes}
        if side is not None:
            names["token_ids"] = f"{side}_ids"
        return {
            name: keras.Input(shape, dtype="int32", name=names[name])
            for name, shape in shapes.items()
        }

    def __call__(
        self,
        inputs,
        vocabulary_size,
        hidden_dim,
        position=None,
        dropout=0.0,
        initializer="uniform",
        *,
        scale=False,
        table=None,
    ):
        """Embed the inputs.

        Args:
            inputs: what `inputs` made. vocabulary_size: int. hidden_dim: int D.
            position: of the builder: what is added to tokens is added, what rotates or biases is
                left to the attention.
            dropout: float, of the sum, and of the characters.
            initializer: a Keras initializer, of tokens and segments.
            scale: bool, the builder's choice, where the part leaves it open.
            table: the `keras.layers.Embedding` of another side, to share, or None.

        Returns:
            x (B, T, D), symbolic; the call arguments of an encoder for packed documents, a dict;
            and the `TokenEmbedding`, which also makes logits.
        """
        ids = inputs["token_ids"]
        initializer = keras.initializers.get(initializer)
        tokens = TokenEmbedding(
            vocabulary_size,
            self.embedding_dim or hidden_dim,
            position=copy_part(positions.for_role(positions.get(position), "embed")),
            scale=scale if self.scale is None else self.scale,
            embeddings_initializer=copy_initializer(initializer),
            padding_id=self.padding_id,
            padding=self.padding,
            logit_bias=self.logit_bias,
            logit_scale=self.logit_scale,
            logit_soft_cap=self.logit_soft_cap,
            table=table,
            name="embedding",
        )
        documents = place_documents(inputs)
        if self.token_dropout:
            dropped = {"padding_id": self.padding_id, "name": "token_dropout"}
            ids = TokenDropout(self.token_dropout, self.unknown_id, **dropped)(ids)
        places = documents.get("positions")
        if self.characters is None:
            x = tokens(ids, positions=places)
        else:
            spelling = CharacterEmbedding(
                self.characters.vocabulary_size,
                self.characters.dim,
                filters=self.characters.filters,
                widths=self.characters.widths,
                dropout=dropout,
                name="characters",
            )
            words = WordEmbedding(tokens, spelling, hidden_dim, name="words")
            x = words(ids, inputs["character_ids"], positions=places)
        if self.exact_match:
            x = SegmentEmbedding(MATCHES, name="exact_match_embedding")(x, inputs["exact_match"])
        if self.class_token:
            x = PrefixTokens(1, name="class_token")(x)
        if self.num_segments is not None:
            drawn = copy_initializer(initializer)
            segments = SegmentEmbedding(self.num_segments, drawn, name="segments")
            x = segments(x, inputs["segment_ids"])
        if self.normalization is not None:
            make = NORMALIZATIONS[self.normalization]
            x = make(epsilon=self.epsilon, name="embedding_norm")(x)
        x = keras.layers.Dropout(dropout, name="dropout")(x)
        if x.shape[-1] != hidden_dim:
            x = keras.layers.Dense(hidden_dim, name="embedding_projection")(x)
        return x, documents, tokens


def unwrap_inputs(inputs):
    """Return the inputs of a model: a dict of several by their names, or the only one."""
    named = {x.name: x for x in inputs.values()}
    return named if len(named) > 1 else next(iter(named.values()))


def place_documents(inputs, prefix=""):
    """Return the call arguments of a stack for packed documents, an empty dict without them.

    Args:
        inputs: dict with symbolic `"document_ids"` (B, T), or without.
        prefix: str, `"encoded_"` for the documents of what a decoder attends to.
    """
    if "document_ids" not in inputs:
        return {}
    numbers = inputs["document_ids"]
    places = PositionsInDocuments(name=numbers.name.replace("_ids", "_positions"))(numbers)
    return {f"{prefix}segment_ids": numbers, f"{prefix}positions": places}
