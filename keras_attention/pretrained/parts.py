"""`build_model`: builds a model from the settings of a checkpoint.

The settings are a flat dict of numbers and names, such as `num_layers`. The functions in
`ka.models` expect layers and parts instead, such as an encoder. Private functions called `_take_*`
remove the settings for one such part from the dict and return the part.
"""

import dataclasses

import keras

from keras_attention import models, positions
from keras_attention.attention import MultiHeadAttention
from keras_attention.blocks import AttentionPooling, FeedForward, FirstOf, residuals
from keras_attention.blocks.activations import get_activation
from keras_attention.blocks.normalization import NORMALIZATIONS
from keras_attention.core.checks import divide_exactly
from keras_attention.models.head import make_transform

# {structure: default settings of an `encoder_decoder`}
T5 = dict(
    normalization="rms_norm",
    use_bias=False,
    score="dot",
    shared_position=True,
    scale_embeddings=False,
)
STRUCTURES = {"t5": T5, "t5_1.1": T5, "bart": dict(norm="post", epsilon=1e-5)}


def build_model(builder, settings):
    """Return the model with the given `settings`, a flat dict such as `Settings.keywords`.

    `builder` is the name of a function in `ka.models`.
    """
    if builder in ("image_encoder", "vision_transformer"):
        return _build_image_model(builder, dict(settings))
    if builder == "encoder_decoder":
        structure = STRUCTURES[settings["structure"]]
        return _build_encoder_decoder({**structure, **settings})
    if builder == "speech_to_text":
        return _build_speech_model(dict(settings))
    return _build_text_model(builder, dict(settings))


def _build_text_model(builder, settings):
    hidden_dim, dropout, norm = _take_common(settings)
    position = _take_position(settings)
    masked = builder == "masked_language_model"
    settings.setdefault("normalize_embeddings", masked)
    settings.setdefault("logit_bias", masked)
    embedding = _take_text_embedding(settings, norm)
    width = hidden_dim
    if masked:  # the logits are inner products with the embeddings
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
    decoder_position = settings.pop("decoder_position", position)
    if settings.pop("scale_logits", False):
        settings["logit_scale"] = hidden_dim**-0.5
    logit_bias = settings.pop("logit_bias", False)  # only the target embedding has it
    embedding = _take_text_embedding(settings, norm, "source_padding_id")
    target = dataclasses.replace(
        embedding, padding_id=settings.pop("target_padding_id"), logit_bias=logit_bias
    )
    decoder = _take_decoder(settings, hidden_dim, dropout, norm, decoder_position)
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
    decoder_position = _take_position(settings)
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
        decoder_position=decoder_position,
        embedding=embedding,
        target_embedding=target,
        encoder=models.TransformerEncoder(**stack),
        decoder=decoder,
        **settings,
    )


def _take_common(settings):
    """Remove and return the width, the dropout, and a dict of arguments for norms."""
    norm = {
        "normalization": settings.pop("normalization", "layer_norm"),
        "epsilon": settings.pop("epsilon", 1e-6),
    }
    return settings.pop("hidden_dim"), settings.pop("dropout"), norm


def _take_position(settings):
    """Remove the settings for the position, and return it as an object of `ka.positions`, or None.

    `settings` is the flat dict. `"learned"` becomes a `Learned` table of `max_length` vectors.
    """
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
    """Remove the settings of a stack of blocks, and return arguments of `TransformerEncoder`."""
    num_layers, num_heads = settings.pop("num_layers"), settings.pop("num_heads")
    key_dim = settings.pop("key_dim", None)
    if key_dim is None:
        key_dim = divide_exactly("hidden_dim", hidden_dim, "num_heads", num_heads)
    use_bias = settings.pop("use_bias", True)
    options = {"dropout": settings.pop("attention_dropout", 0.0), "use_bias": use_bias}
    if "qk_norm" in settings:
        options["qk_norm_epsilon"] = settings.pop("qk_norm_epsilon", norm["epsilon"])
    for name in ("num_key_value_heads", "qkv_bias", "key_bias", "qk_norm", "score", "normalizer"):
        if name in settings:
            options[name] = settings.pop(name)

    def attend(mask, position):
        return MultiHeadAttention(
            num_heads, key_dim, mask=mask, position=position, name="attention", **options
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
    optional = ("num_blocks", "layer_scale", "shared_position")
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
        **{name: settings.pop(name) for name in optional if name in settings},
        **norm,
    }


def _take_decoder(settings, hidden_dim, dropout, norm, position=None):
    """Return a `TransformerDecoder` with the encoder's settings, except for depth and position.

    Only `num_decoder_layers` is removed from `settings`. The other settings are left for the
    encoder.
    """
    own = {"num_layers": settings.pop("num_decoder_layers")}
    stack = _take_stack({**settings, **own}, hidden_dim, dropout, norm, position)
    cross = _take_stack({**settings, **own}, hidden_dim, dropout, norm)["attention"]
    return models.TransformerDecoder(**stack, cross_attention=cross)


def _take_head(settings, width, norm):
    """Remove the settings for the head, and return a list of the layers before the logits.

    `width` is the size of their outputs, and `norm` a dict of arguments for normalization layers.
    """
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
