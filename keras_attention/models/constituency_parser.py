"""Constituency parsing as sequence to sequence: words to the labels of a tree."""

import keras

from keras_attention import positions
from keras_attention.blocks import AllowedLogits, ParserState, SegmentEmbedding, TokenEmbedding
from keras_attention.blocks.inner_layers import copy_part
from keras_attention.blocks.parser_state import DEEPEST
from keras_attention.models.head import name_logits
from keras_attention.models.stack_choice import choose_decoder, choose_encoder
from keras_attention.models.text_embedding import TextEmbedding, unwrap_inputs

SIZES = {}


def constituency_parser(
    vocabulary_size,
    num_constituents,
    num_tags,
    *,
    spare_constituents=8,
    num_layers=3,
    num_decoder_layers=2,
    num_heads=6,
    hidden_dim=192,
    intermediate_dim=768,
    dropout=0.1,
    score="scaled_dot",
    normalizer="softmax",
    mask=None,
    position="rotary",
    decoder_position="alibi",
    embedding=None,
    encoder=None,
    decoder=None,
    name="constituency_parser",
):
    """Transformer that writes the tree of a sentence, label by label.

    (Vinyals et al., 2015, *Grammar as a Foreign Language*, with a Transformer in the place of
    LSTMs.) The tree of "Dogs bark" is `(S (NP NNS ) (VP VBP ) )`, and its decoder follows the
    words: beside a label it reads the encoder's vector of the word that is next, and how deep it
    is. What is no tree over exactly these words has the logit -100 (`ParserState`), so that every
    way to decode, in every format, ends with a tree.

    Args:
        vocabulary_size: int, number of word ids.
        num_constituents: int, labels of constituents.
        num_tags: int, tags of words.
        spare_constituents: int, how many constituents may open in front of the first word; each
            word lets two more.
        num_layers, num_heads, ..., encoder: sizes and parts, as in `text_encoder`. The decoder has
            the sizes, `score` and `normalizer` of the encoder.
        num_decoder_layers: int. decoder_position: `position` of the decoder.
        decoder: `TransformerDecoder`; `num_decoder_layers` and what rotates or biases are then
            stated in it.
        name: str.

    Returns:
        A functional `keras.Model`. Inputs, a dict: those of `sequence_labeler`, and
        `"target_ids"` int32 (B, T). Target ids are 0, padding; 1, in front; 2, the end; 3, which
        closes a constituent; then those that open one, and then tags. Output: `logits` (B, T,
        num_constituents + num_tags + 4), float32, at each place those of the id that follows.
        It consists of two functional models, available by `get_layer`: `"encoder"`, from words to
        `encoded` (B, S, D), and `"decoder"`, from `{"target_ids", "encoded"}` to logits.

    Example:

    ```python
    import numpy as np
    import keras_attention as ka

    model = ka.models.constituency_parser(1000, 26, 45, num_layers=1, num_heads=2, hidden_dim=16)
    words, target = np.array([[5, 7, 9, 0]]), np.array([[1, 4]])
    assert model({"token_ids": words, "target_ids": target}).shape == (1, 2, 75)
    (ids,) = ka.generation.generate(
        model, words, start_token_id=1, end_token_id=2, max_new_tokens=64
    )
    assert sum(np.array(ids) >= 30) == 3  # as many tags as words
    ```
    """
    decoder_position = positions.get(decoder_position)
    shared = dict(num_heads=num_heads, intermediate_dim=intermediate_dim)
    shared |= dict(score=score, normalizer=normalizer)
    own = dict(num_layers=num_layers, mask=mask, position=position)
    encoder = choose_encoder(constituency_parser, encoder, hidden_dim, dropout, own, shared)
    own = dict(num_layers=num_decoder_layers, position=decoder_position)
    decoder = choose_decoder(constituency_parser, decoder, hidden_dim, dropout, own, shared)
    embedding = TextEmbedding() if embedding is None else embedding
    inputs = embedding.inputs()
    x, documents, _ = embedding(inputs, vocabulary_size, hidden_dim, position, dropout)
    encoder_model = keras.Model(unwrap_inputs(inputs), encoder(x, **documents), name="encoder")

    target_ids = keras.Input((None,), dtype="int32", name="target_ids")
    encoded = keras.Input((None, hidden_dim), dtype=x.dtype, name="encoded")
    state = ParserState(num_constituents, num_tags, spare_constituents, name="state")
    word, depth, allowed = state(target_ids, encoded)
    added, size = positions.for_role(decoder_position, "embed"), state.vocabulary_size
    x = TokenEmbedding(size, hidden_dim, copy_part(added), name="embedding")(target_ids)
    word = keras.layers.Dense(hidden_dim, name="next_word")(word)
    x = keras.layers.Add(name="with_next_word")([x, word])
    x = SegmentEmbedding(DEEPEST + 1, name="depth")(x, depth)
    x = keras.layers.Dropout(dropout, name="dropout")(x)
    x = decoder(x, encoded)
    x = keras.layers.Concatenate(name="with_word")([x, word])
    x = keras.layers.Dense(hidden_dim, activation="gelu", name="hidden")(x)
    x = keras.layers.Dropout(dropout, name="hidden_dropout")(x)
    logits = keras.layers.Dense(size, dtype="float32", name="all_logits")(x)
    logits = name_logits(AllowedLogits(dtype="float32", name="allowed")(logits, allowed))
    target = {"target_ids": target_ids, "encoded": encoded}
    return _join(encoder_model, keras.Model(target, logits, name="decoder"), name)


def _join(encoder, decoder, name):
    """The model of words and target ids that runs `decoder` on what `encoder` returns."""
    decoder.supports_masking = True  # or it warns that the mask of the words is lost
    inputs = {x.name: keras.Input(x.shape[1:], dtype=x.dtype, name=x.name) for x in encoder.inputs}
    target_ids = keras.Input((None,), dtype="int32", name="target_ids")
    encoded = encoder(inputs if isinstance(encoder.input, dict) else inputs["token_ids"])
    logits = decoder({"target_ids": target_ids, "encoded": encoded})
    return keras.Model({**inputs, "target_ids": target_ids}, name_logits(logits), name=name)
