"""Functions that choose the encoder and decoder of a new model: the user's, or new from sizes."""

import dataclasses

from keras_attention import positions
from keras_attention.models.transformer import TransformerEncoder
from keras_attention.models.transformer_decoder import TransformerDecoder


def choose_encoder(builder, encoder, hidden_dim, dropout, settings, shared=None, norm="pre"):
    """Return `encoder`, or a new `TransformerEncoder` if `encoder` is None.

    Args:
        builder: the function of `ka.models` that the user called.
        encoder: the value of its argument `encoder`, or None.
        hidden_dim, dropout, norm: arguments of `TransformerEncoder.of_size` for a new encoder.
        settings: dict of other arguments of `of_size`. If `encoder` is not None, they must be the
            defaults of `builder`. Positions that are added to embeddings are ignored.
        shared: dict of arguments of `of_size` that `builder` also uses for its decoder, or None.
            They may have any value.

    Raises:
        ValueError: `encoder` is not None, and one of `settings` is not the default of `builder`.
    """
    position = positions.for_role(positions.get(settings["position"]), "rotate", "bias")
    settings = settings | {"position": position}
    check_unused(builder, "encoder", encoder, **settings)
    if encoder is not None:
        return encoder
    sizes = {"hidden_dim": hidden_dim, "dropout": dropout, "norm": norm}
    return TransformerEncoder.of_size(**sizes, **settings, **shared or {})


def choose_decoder(builder, decoder, hidden_dim, dropout, settings, shared):
    """Return `decoder`, or a new `TransformerDecoder` if `decoder` is None.

    Args:
        builder: the function of `ka.models` that the user called.
        decoder: the value of its argument `decoder`, or None.
        hidden_dim, dropout: width and dropout rate of a new decoder.
        settings: dict with `num_layers` and `position` of the decoder. The arguments of `builder`
            for them are called `num_decoder_layers` and `decoder_position`.
        shared: dict of arguments that `builder` uses for encoder and decoder.
    """
    position = positions.for_role(positions.get(settings["position"]), "rotate", "bias")
    num_layers = settings["num_layers"]
    keywords = {"num_decoder_layers": num_layers, "decoder_position": position}
    check_unused(builder, "decoder", decoder, **keywords)
    if decoder is not None:
        return decoder
    sizes = {"hidden_dim": hidden_dim, "dropout": dropout, "name": "decoder_block"}
    return TransformerDecoder.of_size(num_layers, position=position, **sizes, **shared)


def name_blocks(stack, name):
    """Return a copy of a `TransformerEncoder` or `TransformerDecoder` with blocks called `name`.

    A stack whose name the user has set is returned unchanged, and so is anything else.
    """
    if isinstance(stack, TransformerEncoder) and stack.name == "block":
        return dataclasses.replace(stack, name=name)
    return stack


def check_unused(builder, name, part, **settings):
    """Raise an error if the user passed an encoder or decoder, and also sizes for a new one.

    Args:
        builder: the function of `ka.models` that the user called.
        name: str, `"encoder"` or `"decoder"`.
        part: the value of this argument. If it is None, nothing is checked.
        settings: the arguments of `builder` that have no effect if `part` is not None. Each must
            have its default value. A `position` that is only added to embeddings is allowed.
    """
    if part is None:
        return
    for keyword, value in settings.items():
        default = builder.__kwdefaults__[keyword]
        if keyword.endswith("position"):
            default = None if default == "learned" else positions.get(default)
            default = positions.for_role(default, "rotate", "bias")
            value = default if value is None else value
        if value != default:
            raise ValueError(
                f"{builder.__name__}({keyword}={value!r}, {name}=...): {keyword} has no effect on "
                f"the {name}. Set it in the {name}, or leave {keyword} or {name} out."
            )
