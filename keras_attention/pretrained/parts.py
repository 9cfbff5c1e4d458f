"""Models of the settings of checkpoints: a flat dict becomes the parts that builders take."""

import dataclasses

import keras

from keras_attention import models, positions
from keras_attention.attention import MultiHeadAttention
from keras_attention.blocks import AttentionPooling, FeedForward, FirstOf, residuals
from keras_attention.blocks.feed_forward import get_activation
from keras_attention.blocks.normalization import NORMALIZATIONS
from keras_attention.core.checks import divide_exactly
from keras_attention.models.head import make_transform

# What the structures of an `encoder_decoder` have where a checkpoint does not say otherwise.
T5 = dict(
    normalization="rms_norm",
    use_bias=False,
    score="dot",
    shared_position=True,
    scale_embeddings=False,
)
STRUCTURES = {"t5": T5, "t5_1.1": T5, "bart": dict(norm="post", epsilon=1e-5)}


def build_model(builder, settings):
    """Build a model of `builder` by the flat settings of a checkpoint."""
    if builder in ("image_encoder", "vision_transformer"):
        return _build_image_model(builder, dict(settings))
    if builder == "encoder_decoder":
        structure = STRUCTURES[settings["structure"]]
        return _build_encoder_decoder({**structure, **settings})
    if builder == "speech_to_text":
        return _build_speech_model(dict(settings))
    if builder == "causal_language_model":
        return _build_language_model(dict(settings))
    return _build_text_model(builder, dict(settings))


def _build_text_model(builder, settings):
    hidden_dim, dropout, norm = _take_common(settings)
    position = _take_position(settings)
    masked = builder == "masked_language_model"
    settings.setdefault("normalize_embeddings", masked)
    settings.setdefault("logit_bias", masked)
    embedding = _take_text_embedding(settings, norm)
    width = hidden_dim
    if masked:  # it compares with the tokens' vectors
        width = embedding.embedding_dim or hidden_dim
        settings.setdefault("transform_activation", settings["activation"])
    head = _take_head(settings, width, norm)
    stack = _take_stack(settings, hidden_dim, dropout, norm, position)
    encoder = transformer = models.TransformerEncoder(**stack)
    if builder in ("sequence_labeler", "question_answerer"):

        def encoder(x):
            for layer in (transformer, *head):
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


def _build_language_model(settings):
    hidden_dim, dropout, norm = _take_common(settings)
    position = _take_position(settings)
    embedding = _take_text_embedding(settings, norm)
    stack = _take_stack(settings, hidden_dim, dropout, norm, position)
    return models.causal_language_model(
        hidden_dim=hidden_dim,
        dropout=dropout,
        position=positions.for_role(position, "embed"),
        embedding=embedding,
        encoder=models.TransformerEncoder(**stack),
        **settings,
    )


def _build_image_model(builder, settings):
    hidden_dim, dropout, norm = _take_common(settings)
    embedding = models.ImageEmbedding(
        num_registers=settings.pop("num_registers", 0),
        normalization=norm["normalization"] if settings.pop("normalize_embeddings", 0) else None,
        epsilon=norm["epsilon"],
        use_bias=settings.pop("patch_bias", True),
        pixel_mean=settings.pop("pixel_mean", None),
        pixel_std=settings.pop("pixel_std", None),
    )
    head = []
    if settings.pop("normalize_pooled", False):
        make = NORMALIZATIONS[norm["normalization"]]
        head.append(make(epsilon=norm["epsilon"], name="final_norm"))
        settings["final_norm"] = False
    head += _take_head(settings, hidden_dim, norm)
    stack = _take_stack(settings, hidden_dim, dropout, norm)
    if settings["pooling"] == "map":
        layers = stack["attention"], stack["feed_forward"]
        settings["pooling"] = AttentionPooling(
            *layers, num_prefix_tokens=embedding.num_registers, **norm, name="pooling"
        )
    return getattr(models, builder)(
        hidden_dim=hidden_dim,
        dropout=dropout,
        embedding=embedding,
        encoder=models.TransformerEncoder(**stack),
        head=head,
        **settings,
    )


def _build_encoder_decoder(settings):
    del settings["structure"]
    hidden_dim, dropout, norm = _take_common(settings)
    position = _take_position(settings)
    spoken = settings.pop("decoder_position", position)
    if settings.pop("scale_logits", False):
        settings["logit_scale"] = hidden_dim**-0.5
    logit_bias = settings.pop("logit_bias", False)  # of the target
    embedding = _take_text_embedding(settings, norm, "source_padding_id")
    target = dataclasses.replace(
        embedding, padding_id=settings.pop("target_padding_id"), logit_bias=logit_bias
    )
    decoder = _take_decoder(settings, hidden_dim, dropout, norm, spoken)
    stack = _take_stack(settings, hidden_dim, dropout, norm, position)
    return models.seq2seq_transformer(
        settings.pop("vocabulary_size"),
        hidden_dim=hidden_dim,
        dropout=dropout,
        position=positions.for_role(position, "embed"),
        embedding=embedding,
        target_embedding=target,
        encoder=models.TransformerEncoder(**stack),
        decoder=decoder,
        name="encoder_decoder",
        **settings,
    )


def _build_speech_model(settings):
    hidden_dim, dropout, norm = _take_common(settings)
    spoken = _take_position(settings)
    names = ("input", "num_mel_bins", "sampling_rate", "spectrogram", "num_frames", "stem")
    sound = {name: settings.pop(name) for name in (*names, "subsampling") if name in settings}
    embedding = models.SpeechEmbedding(normalize=False, **sound)
    target = _take_text_embedding(settings, norm, "target_padding_id")
    decoder = _take_decoder(settings, hidden_dim, dropout, norm)
    stack = _take_stack(settings, hidden_dim, dropout, norm)
    return models.speech_to_text(
        hidden_dim=hidden_dim,
        dropout=dropout,
        position=positions.Learned(embedding.count_vectors()),
        decoder_position=spoken,
        embedding=embedding,
        target_embedding=target,
        encoder=models.TransformerEncoder(**stack),
        decoder=decoder,
        **settings,
    )


def _take_common(settings):
    """Take out the width, the dropout, and how norms are."""
    norm = {
        "normalization": settings.pop("normalization", "layer_norm"),
        "epsilon": settings.pop("epsilon", 1e-6),
    }
    return settings.pop("hidden_dim"), settings.pop("dropout"), norm


def _take_position(settings):
    """Take out the position; `"learned"` is a table of `max_length`."""
    position, max_length = settings.pop("position"), settings.pop("max_length", None)
    return positions.Learned(max_length) if position == "learned" else positions.get(position)


def _take_text_embedding(settings, norm, padding="padding_id"):
    named = ("num_segments", "embedding_dim", "logit_bias", "logit_scale", "logit_soft_cap")
    return models.TextEmbedding(
        normalization=norm["normalization"] if settings.pop("normalize_embeddings", 0) else None,
        epsilon=norm["epsilon"],
        scale=settings.pop("scale_embeddings", False),
        padding_id=settings.pop(padding, 0),
        **{name: settings.pop(name) for name in named if name in settings},
    )


def _take_stack(settings, hidden_dim, dropout, norm, position=None):
    """Take out the arguments of a `TransformerEncoder`."""
    num_layers, num_heads = settings.pop("num_layers"), settings.pop("num_heads")
    key_dim = settings.pop("key_dim", None)
    if key_dim is None:
        key_dim = divide_exactly("hidden_dim", hidden_dim, "num_heads", num_heads)
    use_bias = settings.pop("use_bias", True)
    named = (
        *("num_key_value_heads", "qkv_bias", "key_bias", "qk_norm", "score", "normalizer"),
        "qk_norm_epsilon",
    )
    same = {name: settings.pop(name) for name in named if name in settings}
    attention_dropout = settings.pop("attention_dropout", 0.0)
    same = {"qk_norm_epsilon": norm["epsilon"]} | same if "qk_norm" in same else same

    def attend(mask, position):
        return MultiHeadAttention(
            num_heads,
            key_dim,
            dropout=attention_dropout,
            use_bias=use_bias,
            mask=mask,
            position=position,
            name="attention",
            **same,
        )

    mask, rotating = settings.pop("mask", None), positions.for_role(position, "rotate", "bias")
    layer_masks = settings.pop("layer_masks", None)
    layer_positions = settings.pop("layer_positions", None)
    if layer_masks is None and layer_positions is None:
        attention = attend(mask, rotating)
    else:
        each = zip(
            layer_masks or [mask] * num_layers,
            layer_positions or [rotating] * num_layers,
            strict=True,
        )
        attention = [attend(*parts) for parts in each]
    residual = residuals.get(settings.pop("norm", "pre"))
    parts = {name: settings.pop(name) for name in ("first_norm", "final_norm") if name in settings}
    named = ("num_blocks", "layer_scale", "shared_position")
    return {
        "num_layers": num_layers,
        "attention": attention,
        "feed_forward": FeedForward(
            settings.pop("intermediate_dim"),
            settings.pop("activation", "gelu"),
            dropout,
            use_bias,
            name="feed_forward",
        ),
        "norm": dataclasses.replace(residual, **parts) if parts else residual,
        "dropout": dropout,
        **{name: settings.pop(name) for name in named if name in settings},
        **norm,
    }


def _take_decoder(settings, hidden_dim, dropout, norm, position=None):
    """Make the decoder beside an encoder, whose settings stay; it differs in depth and position."""
    own = {"num_layers": settings.pop("num_decoder_layers")}
    stack = _take_stack({**settings, **own}, hidden_dim, dropout, norm, position)
    cross = _take_stack({**settings, **own}, hidden_dim, dropout, norm)["attention"]
    return models.TransformerDecoder(**stack, cross_attention=cross)


def _take_head(settings, width, norm):
    """Take out the layers between the vectors, or the pooled one, and the logits."""
    head = []
    if (pooler := settings.pop("pooler_activation", None)) is not None:
        head.append(keras.layers.Dense(width, get_activation(pooler), name="pooler"))
    transform = settings.pop("transform_activation", None)
    use_bias = settings.pop("transform_bias", True)
    if transform is not None:
        head += make_transform(width, transform, use_bias=use_bias, **norm)
    if (units := settings.pop("projection_dim", None)) is not None:
        bias = settings.pop("projection_bias", False)
        head.append(keras.layers.Dense(units, use_bias=bias, name="projection"))
    if settings.pop("unit_length", False):
        head.append(keras.layers.UnitNormalization(name="unit_length"))
    return head
