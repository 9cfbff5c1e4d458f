"""The Transformer, from one sequence to another."""

import keras

from keras_attention import positions
from keras_attention.models.head import token_logits
from keras_attention.models.stack_choice import check_unused, name_blocks
from keras_attention.models.text_decoder import join
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
    """The Transformer (Vaswani et al., 2017, figure 1): from source ids to target ids.

    Args:
        source_vocabulary_size: int, number of source ids.
        target_vocabulary_size: int, number of target ids, or None for one vocabulary of both, whose
            embeddings are then one table (`clone_model` makes two of it).
        num_layers, num_heads, hidden_dim, intermediate_dim: ints, sizes of encoder and decoder, as
            in `TransformerEncoder.of_size`. `hidden_dim` is also that of the embeddings.
        num_decoder_layers: int, if it differs from `num_layers`.
        dropout: float, of the embeddings and in the stacks.
        score, normalizer: parts of the attention.
        mask: of the attention of a side to its own tokens. In the target the future stays hidden,
            whatever the mask allows.
        position: a part, its name, its config or a list. What rotates or biases goes into the
            attention of a side to itself, what is added into its embedding.
        decoder_position: `position` of the decoder, where it differs from the encoder's.
        norm: how branches join the stream, as in `TransformerEncoder`. `"pre"` is easier to train.
        embedding: `TextEmbedding` of the source: packed pairs, a norm, padding and more. Tokens are
            multiplied by √hidden_dim (section 3.4), unless it says otherwise. A model built without
            `packed` has the same weights, and generates.
        target_embedding: that of the target, where it differs. (Where texts begin with the id that
            also fills up short ones, as in T5 and Marian, its `padding_id` is None: the future is
            hidden anyway.)
        encoder, decoder: a `TransformerEncoder` and a `TransformerDecoder`, or any functions of x,
            and of x and the encoded source. Sizes and parts are then stated in them. None makes one
            of the sizes that the builder has, with `activation="relu"`.
        tie_embeddings: bool, whether the logits are inner products with the target tokens'
            embeddings (section 3.4), or have a matrix of their own.
        name: str.

    Returns:
        A functional `keras.Model`. Inputs, a dict: `"source_ids"` int32 (B, S) and `"target_ids"`
        int32 (B, T), which begin with a start token of your own. Output: logits (B, T,
        target_vocabulary_size), float32, at each place those of the target token that follows.
        Packed, there are `"source_document_ids"` and `"target_document_ids"` beside them, the
        number of each token's pair, 1, 2, ..., and 0 for padding.
        It consists of two functional models, available by `get_layer`: `"encoder"`, from source
        ids to `encoded` (B, S, D), and `"decoder"`, from `{"target_ids", "encoded"}` to logits.

    Example:

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
    sizes = dict(num_heads=num_heads, intermediate_dim=intermediate_dim, mask=mask, norm=norm)
    sizes |= dict(score=score, normalizer=normalizer)
    check_unused(seq2seq_transformer, "decoder", encoder and decoder, **sizes)
    check_unused(seq2seq_transformer, "decoder", decoder, num_decoder_layers=num_decoder_layers)
    sizes |= dict(hidden_dim=hidden_dim, dropout=dropout, activation="relu")
    if encoder is None:
        rotating = positions.for_role(position, "rotate", "bias")
        encoder = TransformerEncoder.of_size(num_layers, position=rotating, **sizes)
    if decoder is None:
        rotating, count = positions.for_role(own, "rotate", "bias"), num_decoder_layers
        decoder = TransformerDecoder.of_size(count or num_layers, position=rotating, **sizes)
    embedding = TextEmbedding() if embedding is None else embedding
    target_embedding = embedding if target_embedding is None else target_embedding
    start = dict(scale=True, initializer=keras.initializers.RandomNormal(stddev=hidden_dim**-0.5))

    source = embedding.inputs("source")
    x, documents, tokens = embedding(
        source, source_vocabulary_size, hidden_dim, position, dropout, **start
    )
    x = name_blocks(encoder, "encoder_block")(x, **documents)
    encoder_model = keras.Model(unwrap_inputs(source), x, name="encoder")

    target = target_embedding.inputs("target")
    encoded = keras.Input((None, hidden_dim), dtype=x.dtype, name="encoded")
    pairs = {}
    if "document_ids" in source:
        pairs["document_ids"] = keras.Input((None,), dtype="int32", name="source_document_ids")
    size = target_vocabulary_size or source_vocabulary_size
    start["table"] = tokens.table if target_vocabulary_size is None else None
    x, documents, tokens = target_embedding(target, size, hidden_dim, own, dropout, **start)
    decoder = name_blocks(decoder, "decoder_block")
    x = decoder(x, encoded, **documents, **place_documents(pairs, "encoded_"))
    logits = token_logits(x, tokens, tie_embeddings)
    inputs = [*target.values(), encoded, *pairs.values()]
    decoder_model = keras.Model({x.name: x for x in inputs}, logits, name="decoder")
    inputs, _, logits = join(encoder_model, decoder_model)
    return keras.Model(inputs, logits, name=name)
