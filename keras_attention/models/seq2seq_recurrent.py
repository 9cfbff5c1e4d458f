"""`seq2seq_recurrent`: builds recurrent encoder-decoders with attention."""

import functools

import keras
from keras import ops

from keras_attention import masks
from keras_attention.blocks import TokenEmbedding
from keras_attention.blocks.inner_layers import copy_part
from keras_attention.models.head import name_logits
from keras_attention.recurrent import (
    AttentionCell,
    Bridge,
    FeedbackDecoder,
    LocalWindow,
    RecurrentDecoder,
    RecurrentEncoder,
    get_cell,
    state_sizes,
)

SIZES = {
    # Bahdanau et al. (2015), appendix B, without its maxout layer
    "RNNsearch": dict(hidden_dim=1000, embedding_dim=620),
    # Luong et al. (2015), section 4.1
    "Luong": dict(
        num_layers=4,
        hidden_dim=1000,
        cell="lstm",
        attention="luong",
        bidirectional=False,
        dropout=0.2,
    ),
}


def seq2seq_recurrent(
    source_vocabulary_size,
    target_vocabulary_size,
    *,
    num_layers=1,
    hidden_dim=256,
    embedding_dim=None,
    dropout=0.1,
    cell="gru",
    bidirectional=True,
    attention="bahdanau",
    score=None,
    normalizer="softmax",
    input_feeding=True,
    local_half_width=None,
    coverage=False,
    coverage_loss=0.0,
    feedback=None,
    source_padding_id=0,
    target_padding_id=0,
    name="seq2seq_recurrent",
):
    """Build a recurrent encoder and decoder with attention, for example to translate text.

    The decoder attends as in Bahdanau et al. (2015), or with `attention="luong"` as in Luong et al.
    (2015). `ka.models.sizes("seq2seq_recurrent")` lists published sizes.

    Args:
        source_vocabulary_size, target_vocabulary_size: ints, the vocabulary sizes of source and
            target.
        num_layers: int, number of layers in the encoder, and also in the decoder.
        hidden_dim: int, the size of every cell, and of the vector before the logits.
        embedding_dim: int, the size of the token embeddings. None is `hidden_dim`.
        dropout: float, the dropout rate for token embeddings, between layers, and before the
            logits.
        cell: `"gru"`, `"lstm"`, `"rnn"`, or a Keras cell, which is copied.
        bidirectional: bool, whether the encoder reads the source in both directions.
        attention, score, normalizer, input_feeding, coverage: how the decoder attends to the
            source, explained in `AttentionCell`.
        local_half_width: int. The decoder predicts a source position at each step, and attends only
            to positions up to this distance from it (*local-p* in Luong et al., 2015). None attends
            to the whole source.
        coverage_loss: float, the weight of a loss for attending to the same source position again,
            explained in `RecurrentDecoder`. 0 for no such loss.
        feedback: `"argmax"` or `"sample"`, how the decoder chooses a token from its own logits, to
            read it as the next input in training with `ka.training.ScheduledSampling`. None reads
            only the target.
        source_padding_id, target_padding_id: ints, the ids of padding, which are masked. None if
            every id is a token.
        name: str, the name of the model.

    Returns:
        A functional `keras.Model`. Inputs, a dict: `"source_ids"` int32 (B, S) and `"target_ids"`
        int32 (B, T), which begin with a start token. Output: logits of the next token (B, T,
        target_vocabulary_size), float32. The model has two functional models inside, which
        `get_layer("encoder")` and `get_layer("decoder")` return.

    ```python
    import numpy as np
    import keras_attention as ka

    model = ka.models.seq2seq_recurrent(50, 40, hidden_dim=8, attention="luong", score="concat")
    ids = {"source_ids": np.ones((2, 7), "int32"), "target_ids": np.ones((2, 5), "int32")}
    with ka.visualization.record_attention(model) as maps:
        assert model(ids).shape == (2, 5, 40)
    assert [weights.shape for weights in maps.values()] == [(2, 1, 5, 7)]
    ```
    """
    source = keras.Input((None,), dtype="int32", name="source_ids")
    target = keras.Input((None,), dtype="int32", name="target_ids")
    embed = functools.partial(TokenEmbedding, hidden_dim=embedding_dim or hidden_dim)
    tokens = embed(source_vocabulary_size, padding_id=source_padding_id, name="source_embedding")
    x = keras.layers.Dropout(dropout, name="source_dropout")(tokens(source))
    settings = dict(num_layers=num_layers, bidirectional=bidirectional, dropout=dropout)
    encode = RecurrentEncoder(get_cell(cell, hidden_dim), **settings, name="recurrent_encoder")
    encoded, states = encode(x)
    decoding = get_cell(copy_part(cell), hidden_dim, num_layers)
    states = Bridge(state_sizes(decoding), name="bridge")(states)
    states = {f"state_{i}": state for i, state in enumerate(states)}
    tokens = masks.token_mask(source, source_padding_id)
    tokens = ops.ones_like(source, dtype="bool") if tokens is None else tokens
    outputs = {"encoded": encoded, "encoded_mask": tokens, **states}
    encoder = keras.Model(source, outputs, name="encoder")

    source_inputs = {
        key: keras.Input(x.shape[1:], dtype=x.dtype, name=key) for key, x in outputs.items()
    }
    local = None if local_half_width is None else LocalWindow(local_half_width, name="local")
    parts = dict(score=copy_part(score), normalizer=copy_part(normalizer), local=local)
    parts |= dict(attention=attention, input_feeding=input_feeding, coverage=coverage)
    attending = AttentionCell(decoding, attention_dim=hidden_dim, name="attention_cell", **parts)
    logits = FeedbackDecoder(
        embed(target_vocabulary_size, padding_id=target_padding_id, name="target_embedding"),
        RecurrentDecoder(attending, coverage_loss=coverage_loss, name="attention"),
        keras.layers.Dense(target_vocabulary_size, dtype="float32", name="logits"),
        feedback=feedback,
        dropout=dropout,
        name="recurrent_decoder",
    )(
        target,
        source_inputs["encoded"],
        initial_states=[source_inputs[name] for name in states],
        encoded_mask=source_inputs["encoded_mask"],
    )
    decoder = keras.Model({"target_ids": target, **source_inputs}, logits, name="decoder")

    ids = {"source_ids": source, "target_ids": target}
    logits = decoder({"target_ids": target, **encoder(source)})
    return keras.Model(ids, name_logits(logits), name=name)
