"""`constituency_parser`: builds a model that generates the parse tree of a sentence."""

import keras

from keras_attention import positions
from keras_attention.blocks import AllowedLogits, ParserState, SegmentEmbedding, TokenEmbedding
from keras_attention.blocks.activations import gelu
from keras_attention.blocks.inner_layers import copy_part
from keras_attention.blocks.parser_state import DEEPEST
from keras_attention.models.head import name_logits
from keras_attention.models.seq2seq_transformer import join
from keras_attention.models.stack_choice import choose_decoder, choose_encoder
from keras_attention.models.text_embedding import TextEmbedding, unwrap_inputs


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
    """Build a Transformer that generates the parse tree of a sentence, label by label.

    The tree of "Dogs bark" is the sequence `(S (NP NNS ) (VP VBP ) )`. The idea is from Vinyals et
    al. (2015, *Grammar as a Foreign Language*), whose model has LSTMs. At each step the decoder
    also reads the encoder's vector of the next word, and the current depth in the tree. A label
    that cannot lead to a tree over exactly these words gets the logit -100 (`ParserState`). So
    greedy, sampled and beam decoding always return a valid tree.

    Args:
        vocabulary_size: int, number of word ids.
        num_constituents: int, number of constituent labels, such as NP and VP.
        num_tags: int, number of part-of-speech tags.
        spare_constituents: int, limits the size of a tree, which can have this many constituents,
            and two more for each word.
        num_layers, num_heads, ..., encoder: sizes and parts of the encoder, explained in
            `text_encoder`. The decoder has the same sizes, `score` and `normalizer`.
        num_decoder_layers: int, the number of layers of the decoder.
        decoder_position: how the decoder encodes positions, with the choices of `position`.
        decoder: a `TransformerDecoder`. With it, leave out `num_decoder_layers`, and a
            `decoder_position` that rotates queries and keys or biases scores. None makes a decoder
            from the sizes.
        name: str, the name of the model.

    Returns:
        A functional `keras.Model`. Inputs, a dict: `"token_ids"` int32 (B, S) and any further
        inputs of the `embedding`, and `"target_ids"` int32 (B, T). Target id 0 is padding, 1 the
        start, 2 the end, and 3 closes a constituent. Ids from 4 are the constituent labels,
        followed by the tags. Output: `logits` of the next id (B, T, num_constituents + num_tags +
        4), float32. `get_layer` returns the model's two functional models: `"encoder"`, from words
        to `encoded` (B, S, D), and `"decoder"`, from `{"target_ids", "encoded"}` to logits.

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
    x = keras.layers.Dense(hidden_dim, activation=gelu, name="hidden")(x)
    x = keras.layers.Dropout(dropout, name="hidden_dropout")(x)
    logits = keras.layers.Dense(size, dtype="float32", name="all_logits")(x)
    logits = name_logits(AllowedLogits(dtype="float32", name="allowed")(logits, allowed))
    target = {"target_ids": target_ids, "encoded": encoded}
    inputs, _, logits = join(encoder_model, keras.Model(target, logits, name="decoder"))
    return keras.Model(inputs, logits, name=name)
