"""A stack of recurrent layers that read both ways, in the place of blocks that attend."""

import dataclasses

import keras

from keras_attention.blocks.inner_layers import copy_part
from keras_attention.core import checks
from keras_attention.recurrent import RecurrentEncoder, get_cell


@dataclasses.dataclass(frozen=True)
class RecurrentStack:
    """Recurrent layers that read a text both ways (Ma and Hovy, 2016; Dozat and Manning, 2017).

    Args:
        num_layers: int.
        hidden_dim: int, an even number: each of two directions has half of it.
        cell: `"lstm"`, `"gru"`, `"rnn"`, or a Keras cell of `hidden_dim / 2` units.
        dropout: float, behind each layer.
        name: str, what the names of the layers begin with.

    Call arguments:
        x: (B, T, D).
        each_layer: bool, whether to return a list with the output of each layer.

    Returns (B, T, hidden_dim). Packed documents are refused: the state goes from one to the next.

    Example:

    ```python
    import keras
    import keras_attention as ka

    encoder = ka.models.RecurrentStack(num_layers=2, hidden_dim=16, cell="gru", dropout=0.3)
    assert encoder(keras.Input((None, 8))).shape == (None, None, 16)
    ```
    """

    num_layers: int
    hidden_dim: int
    cell: object = "lstm"
    dropout: float = 0.0
    name: str = "block"

    def __post_init__(self):
        checks.check_whole_numbers(self, "num_layers", "hidden_dim")
        if self.hidden_dim % 2:
            raise ValueError(
                f"RecurrentStack(hidden_dim={self.hidden_dim}): expected an even number, as each "
                f"of two directions has half of it. Choose {self.hidden_dim + 1}."
            )

    def __call__(self, x, *, each_layer=False, segment_ids=None, positions=None):
        if segment_ids is not None:
            raise ValueError(
                "RecurrentStack was called on packed documents, and its state goes from one to "
                "the next. Build without packed=True, or with a TransformerEncoder."
            )
        outputs = []
        for i in range(self.num_layers):
            cell = get_cell(copy_part(self.cell), self.hidden_dim // 2)
            x, _ = RecurrentEncoder(cell, name=f"{self.name}_{i}")(x)
            x = keras.layers.Dropout(self.dropout, name=f"{self.name}_{i}_dropout")(x)
            outputs.append(x)
        return outputs if each_layer else x
