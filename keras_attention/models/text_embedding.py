"""`TextEmbedding`: the inputs and the first layers of text models, which embed token ids."""

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

MATCHES = 3  # values of the input `exact_match`


@dataclasses.dataclass(frozen=True)
class Characters:
    """Sizes of the part of a `TextEmbedding` that reads characters of words (Ma and Hovy, 2016).

    Args:
        vocabulary_size: int, number of character ids.
        word_length: int C, the number of characters that are read from each word.
        dim: int, the size of the embedding of a character.
        filters: int, the number of filters of each convolution over the characters.
        widths: tuple of ints, one for each convolution, the number of characters that it spans.
    """

    vocabulary_size: int
    word_length: int = 16
    dim: int = 32
    filters: int = 64
    widths: tuple = (2, 3, 4)


@dataclasses.dataclass(frozen=True, kw_only=True)
class TextEmbedding:
    """Settings of the inputs of a text model, and of its first layers, which embed token ids.

    Pass the settings as `embedding=` to a function that builds a model, such as
    `ka.models.text_encoder`. That function calls it with the sizes, dropout and position of the
    model. You may instead pass an object of your own class, which needs `inputs` and `__call__`.

    Args:
        num_segments: int, number of segment types, such as 2 for pairs of sentences. The model then
            has the input `"segment_ids"`. None for no segments.
        exact_match: bool, whether to add the input `"exact_match"`, for a pair of sentences or of
            question and context (Chen et al., 2017, *Reading Wikipedia*, section 3.2). It is 2 for
            a word that also occurs in the other text, 1 if that text only has another form of the
            word, else 0.
        characters: `Characters`, to also read the characters of words, or None.
        embedding_dim: int, the width of the embedding table. If it differs from the model's width,
            a dense layer projects the vectors (Lan et al., 2020, *ALBERT*, section 3.1). None is
            the model's width.
        normalization: `"layer_norm"`, `"layer_norm_no_bias"` or `"rms_norm"`, applied to the sum of
            all embeddings (Devlin et al., 2019). None for no norm.
        epsilon: float, the epsilon of this norm.
        scale: bool, whether token embeddings are multiplied by √D (Vaswani et al., 2017, section
            3.4). Without it, token embeddings are small compared to `"sinusoidal"` positions when
            training begins. None is True in encoder-decoders and False in other models.
        token_dropout: float, the fraction of tokens that are replaced by `unknown_id` in training.
        unknown_id: int, the id of unknown words.
        class_token: bool, whether each row begins with a learned token.
        packed: bool, whether a row holds several documents. This adds the input `"document_ids"`.
            Tokens attend only to their own document, and positions restart in each document.
        padding_id: int, the id of padding, which is masked. None if every id is a token.
        padding: where padding may be: None for anywhere, `"none"` for nowhere, or `"right"` for the
            end of rows, which makes attention faster. Set it in the encoder's attention too.
        logit_bias: bool, whether logits that are inner products with the embeddings, called tied
            logits, have a bias (Marian). It has no effect in models without tied logits.
        logit_scale: float, multiplies tied logits (T5: `hidden_dim**-0.5`).
        logit_soft_cap: positive float. Tied logits become `cap · tanh(logits / cap)` (Gemma 2,
            2024, section 2). None leaves them unchanged. For attention use `Softmax(soft_cap=...)`.

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
        """Make BERT's embedding (Devlin et al., 2019), with segments, a norm and a logit bias.

        `num_segments` is the number of segment types, `epsilon` the small number that the norm adds
        before it divides, and `padding_id` the id of padding.
        """
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
                f"TextEmbedding(class_token=True, num_segments={self.num_segments}): the class "
                "token has no segment. Begin each text with a token of the vocabulary, and use "
                "pooling='first'."
            )
        if self.class_token and self.packed:
            raise ValueError(
                "TextEmbedding(class_token=True, packed=True): a row of several documents has only "
                "one class token. Leave out class_token or packed."
            )

    def inputs(self, side=None):
        """Make the inputs of a model, a dict of symbolic int32 tensors.

        The dict always has `"token_ids"` (B, T). Depending on the settings it also has
        `"character_ids"` (B, T, word_length), `"exact_match"` (B, T), `"segment_ids"` (B, T), and
        `"document_ids"` (B, T). Segments are counted from 0, and the documents of a row from 1.
        Document 0 is padding.

        Args:
            side: `"source"` or `"target"` in an encoder-decoder, else None. It changes the names of
                the tensors to `"source_ids"`, `"source_document_ids"`, etc., but not the keys of
                the dict.
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
        """Embed token ids, segments, characters and the other inputs that the settings add.

        Args:
            inputs: the dict that `inputs()` returned.
            vocabulary_size: int, number of token ids.
            hidden_dim: int D, the size of the vectors.
            position: the model's position. Only positions that are added to embeddings are used.
            dropout: float, the dropout rate for the sum of embeddings, and for characters.
            initializer: a Keras initializer for the embeddings of tokens and segments.
            scale: bool, used if the attribute `scale` is None.
            table: the `keras.layers.Embedding` of the source, which the target shares, or None for
                a new one.

        Returns:
            A tuple of three: x (B, T, D), symbolic. A dict of further arguments for the call of the
            encoder, which is empty without `packed`. The new `TokenEmbedding`, which can also
            compute tied logits.
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
        token_positions = documents.get("positions")
        if self.characters is None:
            x = tokens(ids, positions=token_positions)
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
            x = words(ids, inputs["character_ids"], positions=token_positions)
        if self.exact_match:
            x = SegmentEmbedding(MATCHES, name="exact_match_embedding")(x, inputs["exact_match"])
        if self.class_token:
            x = PrefixTokens(1, name="class_token")(x)
        if self.num_segments is not None:
            settings = {"embeddings_initializer": copy_initializer(initializer), "name": "segments"}
            segments = SegmentEmbedding(self.num_segments, **settings)
            x = segments(x, inputs["segment_ids"])
        if self.normalization is not None:
            make = NORMALIZATIONS[self.normalization]
            x = make(epsilon=self.epsilon, name="embedding_norm")(x)
        x = keras.layers.Dropout(dropout, name="dropout")(x)
        if x.shape[-1] != hidden_dim:
            x = keras.layers.Dense(hidden_dim, name="embedding_projection")(x)
        return x, documents, tokens


def unwrap_inputs(inputs):
    """Return `inputs`, a dict, keyed by tensor name. A single input is returned as a tensor."""
    named = {x.name: x for x in inputs.values()}
    return named if len(named) > 1 else next(iter(named.values()))


def place_documents(inputs, prefix=""):
    """Return the arguments that tell encoder and decoder which document each token belongs to.

    The result is a dict with `"segment_ids"` and, counted in each document, `"positions"`, both (B,
    T).

    Args:
        inputs: dict of symbolic tensors. Without `"document_ids"` (B, T) the result is empty.
        prefix: str, put before the two keys: `"encoded_"` for the source of a decoder.
    """
    if "document_ids" not in inputs:
        return {}
    ids = inputs["document_ids"]
    locate = PositionsInDocuments(name=ids.name.replace("_ids", "_positions"))
    return {f"{prefix}segment_ids": ids, f"{prefix}positions": locate(ids)}
