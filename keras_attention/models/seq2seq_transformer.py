"""`seq2seq_transformer`: builds the encoder-decoder Transformer."""

import dataclasses

import keras

from keras_attention import positions
from keras_attention.models.head import name_logits, token_logits
from keras_attention.models.stack_choice import check_unused, name_blocks
from keras_attention.models.text_embedding import TextEmbedding, place_documents, unwrap_inputs
from keras_attention.models.transformer import TransformerEncoder
from keras_attention.models.transformer_decoder import TransformerDecoder

SIZES = {
    # Vaswani et al. (2017), table 3
    "base": dict(num_layers=6, num_heads=8, hidden_dim=512, intermediate_dim=2048, dropout=0.1),
    "big": dict(num_layers=6, num_heads=16, hidden_dim=1024, intermediate_dim=4096, dropout=0.3),
}


def seq2seq_transformer(
    source_vocabulary_size,
    target_vocabulary_size=None,
    *,
    num_layers=6,
    num_decoder_layers=None,
    num_heads=8,
    hidden_dim=512,
    intermediate_dim=2048,
    dropout=0.1,
    score="scaled_dot",
    normalizer="softmax",
    mask=None,
    position="sinusoidal",
    decoder_position=None,
    norm="post",
    embedding=None,
    target_embedding=None,
    encoder=None,
    decoder=None,
    tie_embeddings=True,
    name="seq2seq_transformer",
):
    """Build an encoder-decoder Transformer, for example to translate (Vaswani et al., 2017).

    Args:
        source_vocabulary_size: int, number of source ids.
        target_vocabulary_size: int, number of target ids. None if source and target have the same
            vocabulary. They then share one embedding table.
        num_layers, num_heads, hidden_dim, intermediate_dim: ints, sizes of encoder and decoder.
            `hidden_dim` is the width of the vectors between blocks and of the embeddings,
            `intermediate_dim` the width inside the feed-forward networks.
        num_decoder_layers: int, number of layers of the decoder. None is `num_layers`.
        dropout: float, the dropout rate for the embeddings and inside the stacks.
        score, normalizer: how all attention layers compute scores and turn them into weights,
            explained in `MultiHeadAttention`.
        mask: the mask of the self-attention in encoder and decoder. The decoder adds a causal mask.
        position: a position, its name, its config or a list of these. Positions that rotate queries
            and keys or bias scores go into the self-attention, others into the embedding.
        decoder_position: the same choices for the decoder. None is `position`.
        norm: where blocks normalize, such as `"post"`, after each residual sum, or `"pre"`, before
            each attention and feed-forward network, which is easier to train. `TransformerEncoder`
            lists all choices.
        embedding: a `TextEmbedding` for the source, to pack several sentence pairs into a row, add
            a norm, set the id of padding and more. By default it multiplies token embeddings by
            √hidden_dim (section 3.4).
        target_embedding: a `TextEmbedding` for the target. None is `embedding`. If the start token
            has the id of padding, as in T5 and Marian, set `padding_id=None` in this embedding.
        encoder: a `TransformerEncoder`, or any function of x (B, S, D). With it, leave out the
            arguments that set only the encoder. None makes an encoder from the other arguments,
            with `activation="relu"`.
        decoder: a `TransformerDecoder`, or any function of x (B, T, D) and the encoded source. With
            it, leave out the arguments that set only the decoder. None makes a decoder from the
            other arguments.
        tie_embeddings: bool, whether the logits are inner products with the embeddings of target
            tokens (section 3.4). False uses a separate matrix.
        name: str, the name of the model.

    Returns:
        A functional `keras.Model`. Inputs, a dict: `"source_ids"` int32 (B, S) and `"target_ids"`
        int32 (B, T), which begin with a start token. Output: logits of the next target token (B, T,
        target_vocabulary_size), float32.

        The model has two functional models inside: `get_layer("encoder")`, from source ids to
        `encoded` (B, S, D), and `get_layer("decoder")`, from `{"target_ids", "encoded"}` to logits.

        If the embedding has `packed=True`, a row holds several sentence pairs, and the model is for
        training only. Further inputs are then `"source_document_ids"` and `"target_document_ids"`,
        which number the pairs of a row from 1 and are 0 in padding. To generate, copy the weights
        to a model built without `packed`.

    ```python
    from keras import ops
    import keras_attention as ka

    model = ka.models.seq2seq_transformer(
        100, 90, num_layers=1, num_heads=2, hidden_dim=16, intermediate_dim=32
    )
    source, target = ops.array([[5, 7, 9, 0]]), ops.array([[1, 4]])
    assert model({"source_ids": source, "target_ids": target}).shape == (1, 2, 90)
    encoded = model.get_layer("encoder")(source)
    logits = model.get_layer("decoder")({"target_ids": target, "encoded": encoded})
    assert logits.shape == (1, 2, 90)
    ```
    """
    position = positions.get(position)
    own = position if decoder_position is None else positions.get(decoder_position)
    rotation = positions.for_role(positions.get(decoder_position), "rotate", "bias")
    sizes = dict(num_heads=num_heads, intermediate_dim=intermediate_dim, mask=mask, norm=norm)
    sizes |= dict(score=score, normalizer=normalizer)
    check_unused(seq2seq_transformer, "decoder", encoder and decoder, **sizes)
    changed = dict(num_decoder_layers=num_decoder_layers, decoder_position=rotation)
    check_unused(seq2seq_transformer, "decoder", decoder, **changed)
    sizes |= dict(hidden_dim=hidden_dim, dropout=dropout, activation="relu")
    if encoder is None:
        rotating = positions.for_role(position, "rotate", "bias")
        encoder = TransformerEncoder.of_size(num_layers, position=rotating, **sizes)
    if decoder is None:
        rotating, count = positions.for_role(own, "rotate", "bias"), num_decoder_layers
        decoder = TransformerDecoder.of_size(count or num_layers, position=rotating, **sizes)
    embedding = TextEmbedding() if embedding is None else embedding
    target_embedding = embedding if target_embedding is None else target_embedding
    if isinstance(embedding, TextEmbedding):
        embedding = dataclasses.replace(embedding, logit_bias=False)  # only the target has logits
    initial = keras.initializers.RandomNormal(stddev=hidden_dim**-0.5)

    source = embedding.inputs("source")
    x, documents, tokens = embedding(
        source, source_vocabulary_size, hidden_dim, position, dropout, initial, scale=True
    )
    x = name_blocks(encoder, "encoder_block")(x, **documents)
    encoder_model = keras.Model(unwrap_inputs(source), x, name="encoder")

    decoder_model = build_decoder(
        *(target_vocabulary_size or source_vocabulary_size, hidden_dim, dropout, own),
        *(target_embedding, decoder, x, tie_embeddings, initial),
        table=tokens.table if target_vocabulary_size is None else None,
        packed="document_ids" in source,
    )
    inputs, _, logits = join(encoder_model, decoder_model)
    return keras.Model(inputs, logits, name=name)


def build_decoder(
    vocabulary_size,
    hidden_dim,
    dropout,
    position,
    embedding,
    decoder,
    encoded,
    tie_embeddings,
    initializer,
    table=None,
    packed=False,
):
    """Build the decoder of an encoder-decoder as a functional model called `"decoder"`.

    The inputs of the model are a dict with `"target_ids"` and `"encoded"`. Its output is the logits
    (B, T, vocabulary_size).

    Args:
        vocabulary_size: int, number of target ids.
        hidden_dim: int D, the size of the embeddings.
        dropout: float, the dropout rate for the embeddings.
        position: the decoder's position. Only positions that are added to embeddings are used here.
        embedding: a `TextEmbedding`.
        decoder: a `TransformerDecoder`, or a function of x and the encoded source.
        encoded: the output of the encoder (B, S, E), symbolic.
        tie_embeddings: bool, whether the logits are inner products with the token embeddings.
        initializer: a Keras initializer for the token embeddings.
        table: the `keras.layers.Embedding` of the source, which the target shares, or None.
        packed: bool, whether a row holds several sentence pairs, which adds the input
            `"source_document_ids"`.
    """
    target = embedding.inputs("target")
    encoded = keras.Input(encoded.shape[1:], dtype=encoded.dtype, name="encoded")
    source = {}
    if packed:
        source["document_ids"] = keras.Input((None,), dtype="int32", name="source_document_ids")
    settings = (vocabulary_size, hidden_dim, position, dropout, initializer)
    x, documents, tokens = embedding(target, *settings, scale=True, table=table)
    decoder = name_blocks(decoder, "decoder_block")
    x = decoder(x, encoded, **documents, **place_documents(source, "encoded_"))
    logits = token_logits(x, tokens, tie_embeddings)
    inputs = [*target.values(), encoded, *source.values()]
    return keras.Model({x.name: x for x in inputs}, logits, name="decoder")


def join(encoder, decoder):
    """Connect an encoder and a decoder with new inputs, to make one model of both.

    Args:
        encoder: functional model with one output.
        decoder: functional model with a dict of inputs, one of them `"encoded"`.

    Returns:
        Symbolic tensors: a dict of all inputs except `"encoded"`, the encoded source, and the
        logits.
    """
    decoder.supports_masking = True  # otherwise Keras warns that the mask of the source is lost
    inputs = {
        x.name: keras.Input(x.shape[1:], dtype=x.dtype, name=x.name)
        for x in (*encoder.inputs, *decoder.inputs)
        if x.name != "encoded"
    }
    encoded = encoder(keras.tree.map_structure(lambda x: inputs[x.name], encoder.input))
    tensors = {**inputs, "encoded": encoded}
    logits = name_logits(decoder({name: tensors[name] for name in decoder.input}))
    return inputs, encoded, logits
