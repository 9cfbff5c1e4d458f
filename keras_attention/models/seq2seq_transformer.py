"""The Transformer, from one sequence to another."""

import keras

from keras_attention.blocks import DeepNorm, TokenEmbedding
from keras_attention.blocks.packed_documents import document_inputs, name_inputs
from keras_attention.models.head import name_logits, token_logits
from keras_attention.models.keywords import get_position, takes_keywords_of
from keras_attention.models.stack_keywords import DecoderKeywords, EncoderKeywords

SIZES = {
    # Vaswani et al. (2017), table 3
    "base": dict(num_layers=6, num_heads=8, hidden_dim=512, intermediate_dim=2048, dropout=0.1),
    "big": dict(num_layers=6, num_heads=16, hidden_dim=1024, intermediate_dim=4096, dropout=0.3),
}


@takes_keywords_of(
    EncoderKeywords,
    num_layers=6,
    num_heads=8,
    hidden_dim=512,
    intermediate_dim=2048,
    dropout=0.1,
    norm="post",
    activation="relu",
    position="sinusoidal",
)
def seq2seq_transformer(
    source_vocabulary_size,
    target_vocabulary_size=None,
    *,
    num_decoder_layers=None,
    decoder_position=None,
    cross_position=None,
    scale_embeddings=True,
    normalize_embeddings=False,
    tie_embeddings=True,
    scale_logits=False,
    logit_bias=False,
    packed=False,
    source_padding_id=0,
    target_padding_id=0,
    name="seq2seq_transformer",
    **transformer,
):
    """The Transformer (Vaswani et al., 2017, figure 1): from source ids to target ids.

    Args:
        source_vocabulary_size: int, number of source ids.
        target_vocabulary_size: int, number of target ids; or None for one vocabulary of both, whose
            embeddings are then one table (`clone_model` makes two of it).
        num_decoder_layers: int, if it differs from `num_layers`.
        decoder_position: `position` of the decoder, where it differs from the encoder's.
        cross_position: a position that rotates or biases in cross-attention, or None.
        scale_embeddings: bool, whether tokens are multiplied by √hidden_dim (section 3.4).
        normalize_embeddings: bool, whether a norm follows the embeddings (Lewis et al., 2020).
        tie_embeddings: bool, whether the logits are inner products with the target tokens'
            embeddings (section 3.4), or have a matrix of their own.
        scale_logits: bool, whether tied logits are divided by √hidden_dim (T5).
        logit_bias: bool, whether tied logits have a learned bias (Marian).
        packed: bool, whether rows hold several pairs each: two more inputs tell them apart, so that
            tokens see the source and the target of their own pair alone and count from the first
            token of each. For training: a model built without it, with the same weights, generates.
        source_padding_id, target_padding_id: ints, the ids that are no tokens and are masked
            inside; None where every id is one. (Where texts begin with the id that also fills up
            short ones, as in T5 and Marian, the target has None: the future is hidden anyway.)
        name: str.
        transformer: keywords of `TransformerEncoder`, which documents them, for encoder and
            decoder: sizes, `dropout` (here of embeddings too), norms, and the parts `score`,
            `normalizer`, `mask` (of a side's own tokens; in the target the future stays hidden,
            whatever it allows) and `position`. Published sizes:
            `ka.models.sizes("seq2seq_transformer")`.

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
    encoder, decoder = _stacks(transformer, num_decoder_layers, decoder_position, cross_position)

    def embed(ids, size, stack, documents, padding_id, table=None, logit_bias=False):
        embedding = TokenEmbedding(
            size,
            stack.hidden_dim,
            position=stack.embedding_position(),
            scale=scale_embeddings,
            embeddings_initializer=keras.initializers.RandomNormal(stddev=stack.hidden_dim**-0.5),
            logit_scale=stack.hidden_dim**-0.5 if scale_logits else 1.0,
            logit_bias=logit_bias,
            table=table,
            padding_id=padding_id,
            padding=None if padding_id is None else stack.padding,
            name="embedding",
        )
        x = embedding(ids, positions=documents.get("positions"))
        if normalize_embeddings:
            x = stack.make_normalization("embedding_norm")(x)
        return keras.layers.Dropout(stack.dropout, name="dropout")(x), embedding

    source_ids = keras.Input((None,), dtype="int32", name="source_ids")
    inputs, documents = document_inputs(packed, "source_document_ids")
    x, embedding = embed(source_ids, source_vocabulary_size, encoder, documents, source_padding_id)
    x = encoder(x, name="encoder_block", **documents)
    encoder_model = keras.Model(name_inputs(source_ids, **inputs), x, name="encoder")

    target_ids = keras.Input((None,), dtype="int32", name="target_ids")
    encoded = keras.Input((None, encoder.hidden_dim), dtype=x.dtype, name="encoded")
    size, table = target_vocabulary_size, None
    if size is None:
        size, table = source_vocabulary_size, embedding.table
    inputs, documents = document_inputs(packed, "target_document_ids")
    source_inputs, of_source = document_inputs(packed, "source_document_ids")
    pairs = {**documents, **{f"encoded_{key}": value for key, value in of_source.items()}}
    x, embedding = embed(
        target_ids,
        size,
        decoder,
        documents,
        target_padding_id,
        table,
        logit_bias and tie_embeddings,
    )
    x = decoder(x, encoded, name="decoder_block", **pairs)
    logits = token_logits(x, embedding, tie_embeddings)
    inputs = {"target_ids": target_ids, "encoded": encoded, **inputs, **source_inputs}
    decoder_model = keras.Model(inputs, logits, name="decoder")
    return _join(encoder_model, decoder_model, name, packed)


def _stacks(transformer, num_decoder_layers, decoder_position, cross_position):
    """The stacks of both sides: the decoder's differs in depth and positions, where given."""
    num_layers, max_length = transformer["num_layers"], transformer.get("max_length")
    num_decoder_layers = num_decoder_layers or num_layers
    norm = transformer.get("norm")
    if norm == "deep_norm":
        norm = DeepNorm(num_layers, num_decoder_layers=num_decoder_layers)
    encoder = EncoderKeywords(**{**transformer, "norm": norm})
    decoder = DecoderKeywords(
        **{
            **transformer,
            "num_layers": num_decoder_layers,
            "position": get_position(decoder_position, max_length) or encoder.position,
            "cross_position": cross_position,
        }
    )
    return encoder, decoder


def _join(encoder, decoder, name, packed):
    """The model of `{"source_ids", "target_ids"}` that runs `decoder` on what `encoder` returns.

    With `packed` both take the documents of their ids too.
    """
    decoder.supports_masking = True  # or it warns that the mask of the source is lost
    source_ids = keras.Input((None,), dtype="int32", name="source_ids")
    target_ids = keras.Input((None,), dtype="int32", name="target_ids")
    documents, of_source = {}, {}
    if packed:
        documents = {
            name: keras.Input((None,), dtype="int32", name=name)
            for name in ("source_document_ids", "target_document_ids")
        }
        of_source = {"source_document_ids": documents["source_document_ids"]}
    encoded = encoder(name_inputs(source_ids, **of_source))
    output = decoder({"target_ids": target_ids, "encoded": encoded, **documents})
    inputs = {"source_ids": source_ids, "target_ids": target_ids, **documents}
    return keras.Model(inputs, name_logits(output), name=name)
