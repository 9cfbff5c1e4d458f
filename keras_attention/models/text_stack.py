"""The stack of text encoders: blocks that attend, or recurrent layers in their place."""

import dataclasses

import keras

from keras_attention.models.conformer import ConformerEncoder
from keras_attention.recurrent import RecurrentEncoder, get_cell

RECURRENT = ("lstm", "gru")
# What recurrent layers have nothing of. Heads, positions and norms have a default in every builder.
OF_BLOCKS = (
    "num_key_value_heads",
    "num_blocks",
    "attention_dropout",
    "stochastic_depth",
    "layer_scale",
    "kernel_size",
    "convolution_norm",
    "mask",
    "layer_masks",
    "layer_positions",
    "remat",
    "scan_layers",
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class TextStack(ConformerEncoder):
    """A stack of Conformer or encoder blocks, or of recurrent layers that read both ways.

    (Ma and Hovy, 2016; Dozat and Manning, 2017: words that were read by LSTMs.)

    Args:
        block: `"conformer"`, `"encoder"`, `"lstm"` or `"gru"`. Each recurrent layer has
            `hidden_dim / 2` units for each direction, and `dropout` behind it. Heads, positions,
            feed-forward networks and norms are left aside.
        num_layers, ...: as in `ConformerEncoder`.
    """

    _kinds = (*ConformerEncoder._kinds, *RECURRENT)

    def __post_init__(self):
        recurrent = self.block in RECURRENT
        if recurrent and self.key_dim is None:  # heads need not divide what is not split
            object.__setattr__(self, "key_dim", max(1, self.hidden_dim // self.num_heads))
        super().__post_init__()
        if not recurrent:
            return
        if self.hidden_dim % 2:
            raise ValueError(
                f"hidden_dim={self.hidden_dim} with block={self.block!r}: expected an even number, "
                "as each of two directions has half of it."
            )
        for field in dataclasses.fields(self):
            given = getattr(self, field.name)
            if field.name in OF_BLOCKS and given != field.default:
                raise ValueError(
                    f"{field.name}={given!r} is of blocks that attend, and block={self.block!r} "
                    "makes recurrent layers: leave it out, or build with block='encoder'."
                )

    def _run_layers(self, x, source, name, each_layer, documents):
        if self.block not in RECURRENT:
            return super()._run_layers(x, source, name, each_layer, documents)
        outputs = []
        for i in range(self.num_layers):
            cell = get_cell(self.block, self.hidden_dim // 2)
            x, _ = RecurrentEncoder(cell, name=f"{name}_{i}")(x)
            x = keras.layers.Dropout(self.dropout, name=f"{name}_{i}_dropout")(x)
            outputs.append(x)
        return outputs if each_layer else x
