"""Sequence to sequence: the Transformer."""

import keras

from keras_attention import positions
from keras_attention.blocks import DeepNorm, TokenEmbedding
from keras_attention.blocks.encoder import NORMALIZATIONS
from keras_attention.models import ends
from keras_attention.models.stack import decoder_stack, encoder_stack, own, positioned

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
    key_dim=None,
    num_key_value_heads=None,
    dropout=0.1,
    attention_dropout=0.0,
    norm="post",
    normalization="layer_norm",
    activation="relu",
    position="sinusoidal",
    max_length=None,
    decoder_position=None,
    cross_position=None,
    shared_position=False,
    score="scaled_dot",
    normalizer="softmax",
    mask=None,
    num_blocks=None,
    use_bias=True,
    scale_embeddings=True,
    normalize_embeddings=False,
    tie_embeddings=True,
    scale_logits=False,
    epsilon=1e-6,
    name="seq2seq_transformer",
):
    """The Transformer (Vaswani et al., 2017, figure 1): a source read, a target written beside it.

    Args:
        source_vocabulary_size: int, number of source ids; id 0 is padding and masked inside.
        target_vocabulary_size: int, number of target ids, id 0 padding; or None for one vocabulary
            of both, whose embeddings are then one table (`clone_model` makes two of it).
        num_layers, num_heads, hidden_dim, intermediate_dim: ints, the size of encoder and decoder.
            The paper's: `ka.models.sizes("seq2seq_transformer")`.
        num_decoder_layers: int, if it differs from `num_layers`.
        key_dim: int, the size of a head, None is `hidden_dim / num_heads`. num_key_value_heads: int
            that divides `num_heads`, None is as many.
        dropout: float, on embeddings and in every block; attention_dropout: on attention weights.
        norm, normalization, activation: as in `EncoderBlock` and `FeedForward`.
        position: a part, its name or its config; a list combines them. Those that are added go to
            both embeddings, the others into the self-attention of every block. `"learned"` is a
            table of `max_length` for each side.
        decoder_position: the same for the decoder, where it differs.
        cross_position: a position that rotates or biases in cross-attention, or None.
        shared_position: bool, whether the blocks of a side share the weights of their position
            (Raffel et al., 2020, *T5*); `clone_model` gives each block its own.
        score, normalizer: a part, its name or its config.
        mask: what source and target tokens may attend to of their own side, such as `Window(64)`,
            or None for all; in the target nobody sees the future, whatever it allows.
        num_blocks: int, how many blocks of encoder and decoder have weights of their own.
        use_bias: bool, whether projections in the blocks have a bias.
        scale_embeddings: bool, whether tokens are multiplied by √hidden_dim (section 3.4).
        normalize_embeddings: bool, whether a norm follows the embeddings (Lewis et al., 2020).
        tie_embeddings: bool, whether the logits are inner products with the target tokens'
            embeddings (section 3.4), or have a matrix of their own.
        scale_logits: bool, whether tied logits are divided by √hidden_dim (T5).
        epsilon: float, of the normalizations.
        name: str.

    Returns:
        A functional `keras.Model`. Inputs, a dict: `"source_ids"` int32 (B, S) and `"target_ids"`
        int32 (B, T), which begin with a BEGIN of your own. Output: logits (B, T,
        target_vocabulary_size), float32, at each place those of the target token that follows.
        It is made of two functional models, to be had with `get_layer`: `"encoder"`, from source
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
    num_decoder_layers = num_decoder_layers or num_layers
    position = positioned(position, max_length)
    decoder_position = positioned(decoder_position, max_length) or position
    settings = dict(
        num_heads=num_heads,
        intermediate_dim=intermediate_dim,
        key_dim=key_dim,
        num_key_value_heads=num_key_value_heads,
        num_blocks=num_blocks,
        dropout=dropout,
        attention_dropout=attention_dropout,
        normalization=normalization,
        activation=activation,
        use_bias=use_bias,
        shared_position=shared_position,
        score=score,
        normalizer=normalizer,
        epsilon=epsilon,
    )

    def embed(ids, size, position, table=None):
        embedding = TokenEmbedding(
            size,
            hidden_dim,
            position=own(positions.for_role(position, "embed")),
            scale=scale_embeddings,
            embeddings_initializer=keras.initializers.RandomNormal(stddev=hidden_dim**-0.5),
            logit_scale=hidden_dim**-0.5 if scale_logits else 1.0,
            table=table,
            name="embedding",
        )
        x = embedding(ids)
        if normalize_embeddings:
            x = NORMALIZATIONS[normalization](epsilon=epsilon, name="embedding_norm")(x)
        return keras.layers.Dropout(dropout, name="dropout")(x), embedding

    source_ids = keras.Input((None,), dtype="int32", name="source_ids")
    x, embedding = embed(source_ids, source_vocabulary_size, position)
    deep = norm == "deep_norm"
    x = encoder_stack(
        x,
        num_layers=num_layers,
        norm=DeepNorm(num_layers, num_decoder_layers=num_decoder_layers) if deep else norm,
        position=own(position),
        mask=mask,
        name="encoder_block",
        **settings,
    )
    encoder = keras.Model(source_ids, x, name="encoder")

    target_ids = keras.Input((None,), dtype="int32", name="target_ids")
    encoded = keras.Input((None, hidden_dim), dtype=x.dtype, name="encoded")
    size, table = target_vocabulary_size, None
    if size is None:
        size, table = source_vocabulary_size, embedding.table
    x, embedding = embed(target_ids, size, decoder_position, table)
    x = decoder_stack(
        x,
        encoded,
        num_layers=num_decoder_layers,
        norm=norm,
        position=own(decoder_position),
        cross_position=cross_position,
        mask=ends.causal(mask),
        name="decoder_block",
        **settings,
    )
    logits = ends.logits(x, embedding, tie_embeddings)
    decoder = keras.Model({"target_ids": target_ids, "encoded": encoded}, logits, name="decoder")
    return ends.join(encoder, decoder, name)
