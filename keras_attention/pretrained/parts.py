"""Models of the settings of checkpoints: a flat dict becomes the parts that builders take."""

import keras

from keras_attention import masks, models, positions
from keras_attention.attention import MultiHeadAttention
from keras_attention.blocks import FeedForward, FirstOf, PreNorm, residuals
from keras_attention.blocks.feed_forward import get_activation
from keras_attention.core.checks import divide_exactly
from keras_attention.models.head import make_transform

TEXTS = (
    *("masked_language_model", "question_answerer", "sequence_labeler", "text_classifier"),
    *("causal_language_model", "text_encoder"),
)


def build_model(builder, settings):
    """Build a model of `builder` by the flat settings of a checkpoint."""
    settings = dict(settings)
    if builder not in TEXTS:
        return getattr(models, builder)(**settings)
    hidden_dim, dropout = settings.pop("hidden_dim"), settings.pop("dropout")
    norm = {
        "normalization": settings.pop("normalization", "layer_norm"),
        "epsilon": settings.pop("epsilon", 1e-6),
    }
    position = _get_position(settings.pop("position"), settings.pop("max_length", None))
    embedding = _take_embedding(builder, settings, norm)
    attend = positions.for_role(position, "rotate", "bias")
    width = hidden_dim
    if builder == "masked_language_model":  # which compares with the tokens' vectors
        width = embedding.embedding_dim or hidden_dim
    head = _take_head(builder, settings, width, norm)
    encoder = _take_encoder(settings, hidden_dim, dropout, attend, norm)
    if builder in ("sequence_labeler", "question_answerer"):
        stack = encoder

        def encoder(x):
            for layer in (stack, *head):
                x = layer(x)
            return x

    elif builder != "causal_language_model":
        settings["head"] = head
    if settings.get("pooling") == "end":
        settings["pooling"] = FirstOf(settings.pop("end_token_id"), name="pooling")
    return getattr(models, builder)(
        hidden_dim=hidden_dim,
        dropout=dropout,
        position=positions.for_role(position, "embed"),
        embedding=embedding,
        encoder=encoder,
        **settings,
    )


def _get_position(position, max_length):
    """A position; `"learned"` is a table of `max_length`."""
    return positions.Learned(max_length) if position == "learned" else positions.get(position)


def _take_embedding(builder, settings, norm):
    masked = builder == "masked_language_model"
    normalized = settings.pop("normalize_embeddings", masked)
    return models.TextEmbedding(
        num_segments=settings.pop("num_segments", None),
        embedding_dim=settings.pop("embedding_dim", None),
        normalization=norm["normalization"] if normalized else None,
        epsilon=norm["epsilon"],
        scale=settings.pop("scale_embeddings", False),
        padding_id=settings.pop("padding_id", 0),
        logit_bias=settings.pop("logit_bias", masked),
        logit_soft_cap=settings.pop("logit_soft_cap", None),
    )


def _take_encoder(settings, hidden_dim, dropout, position, norm):
    """The stack that `settings` describe, which are taken out of them."""
    num_layers, num_heads = settings.pop("num_layers"), settings.pop("num_heads")
    mask, use_bias = masks.get(settings.pop("mask", None)), settings.pop("use_bias", True)
    key_dim = settings.pop("key_dim", None)
    key_dim = key_dim or divide_exactly("hidden_dim", hidden_dim, "num_heads", num_heads)
    attention_settings = {
        "num_key_value_heads": settings.pop("num_key_value_heads", None),
        "dropout": settings.pop("attention_dropout", 0.0),
        "use_bias": use_bias,
        "qkv_bias": settings.pop("qkv_bias", None),
        "qk_norm": settings.pop("qk_norm", None),
        "qk_norm_epsilon": settings.pop("qk_norm_epsilon", norm["epsilon"]),
        "normalizer": settings.pop("normalizer", "softmax"),
    }
    seen = settings.pop("layer_masks", None) or [mask] * num_layers
    places = settings.pop("layer_positions", None) or [position] * num_layers
    attention = [
        MultiHeadAttention(num_heads, key_dim, mask=m, position=p, **attention_settings)
        for m, p in zip(seen, places, strict=True)
    ]
    alike = all(m == seen[0] and p == places[0] for m, p in zip(seen, places, strict=True))
    residual = residuals.get(settings.pop("norm", "pre"))
    if not settings.pop("first_norm", True):
        residual = PreNorm(first_norm=False)
    return models.TransformerEncoder(
        num_layers,
        attention=attention[0] if alike else attention,
        feed_forward=FeedForward(
            settings.pop("intermediate_dim"), settings.pop("activation", "gelu"), dropout, use_bias
        ),
        norm=residual,
        dropout=dropout,
        num_blocks=settings.pop("num_blocks", None),
        **norm,
    )


def _take_head(builder, settings, width, norm):
    """The layers between the vectors, or the pooled one, and the logits."""
    head = []
    if (pooler := settings.pop("pooler_activation", None)) is not None:
        head.append(keras.layers.Dense(width, get_activation(pooler), name="pooler"))
    transform = settings.pop("transform_activation", None)
    if builder == "masked_language_model" and transform is None:
        transform = settings["activation"]
    use_bias = settings.pop("transform_bias", True)
    if transform is not None:
        head += make_transform(width, transform, use_bias=use_bias, **norm)
    if (units := settings.pop("projection_dim", None)) is not None:
        bias = settings.pop("projection_bias", False)
        head.append(keras.layers.Dense(units, use_bias=bias, name="projection"))
    if settings.pop("unit_length", False):
        head.append(keras.layers.UnitNormalization(name="unit_length"))
    return head
