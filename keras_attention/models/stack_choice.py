"""The stacks of a builder: those that it is given, or new ones of its sizes."""

import dataclasses

from keras_attention import positions
from keras_attention.models.transformer import TransformerEncoder
from keras_attention.models.transformer_decoder import TransformerDecoder


def choose_encoder(
    builder, encoder, hidden_dim, dropout, settings, shared=None, norm="pre", name="encoder"
):
    """Return the encoder that a builder is given, or a `TransformerEncoder` of its sizes.

    Args:
        builder: the function. encoder: what it is given, or None.
        hidden_dim, dropout: of a new encoder.
        settings: dict, values of the builder's keywords of `TransformerEncoder.of_size` that have
            no effect beside an encoder. Of `position` what rotates or biases goes into it.
        shared: dict, others, which have an effect elsewhere; or None.
        norm: of a new encoder.
        name: str, the keyword of the encoder.

    Raises:
        ValueError: an encoder is given, and some of `settings` are not the builder's defaults.
    """
    position = positions.for_role(positions.get(settings["position"]), "rotate", "bias")
    settings = settings | {"position": position}
    check_unused(builder, name, encoder, **settings)
    if encoder is not None:
        return encoder
    sizes = {"hidden_dim": hidden_dim, "dropout": dropout, "norm": norm}
    return TransformerEncoder.of_size(**sizes, **settings, **shared or {})


def choose_decoder(builder, decoder, hidden_dim, dropout, settings, shared):
    """Return the decoder that a builder is given, or a `TransformerDecoder` of its sizes.

    Args:
        builder, hidden_dim, dropout, shared: as in `choose_encoder`.
        decoder: what it is given, or None.
        settings: dict, as there, `num_layers` and `position` of the builder's
            `num_decoder_layers` and `decoder_position`.
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
    """Return a stack whose blocks are called `name`, if it has no name of its own.

    Others than the stacks of this package are returned as they are.
    """
    if isinstance(stack, TransformerEncoder) and stack.name == "block":
        return dataclasses.replace(stack, name=name)
    return stack


def check_unused(builder, name, part, **settings):
    """Refuse settings of a builder that have no effect, as a part is given in their place.

    Args:
        builder: the function, whose defaults say what its caller left out.
        name: str, the keyword of the part, such as `"encoder"`. part: the part, or None.
        settings: values of keywords. A position is only what rotates or biases, or None.
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
                f"{builder.__name__}({keyword}={value!r}, {name}=...): {keyword} has no effect "
                f"beside the {name} that is given. State it there, or leave one of them out."
            )
