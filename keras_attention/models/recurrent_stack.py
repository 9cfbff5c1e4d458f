"""`RecurrentStack`: bidirectional recurrent layers, to use as the encoder of a model."""

import dataclasses

import keras

from keras_attention.blocks.inner_layers import copy_part
from keras_attention.core import checks
from keras_attention.recurrent import RecurrentEncoder, get_cell


@dataclasses.dataclass(frozen=True)
class RecurrentStack:
    """A stack of bidirectional recurrent layers, such as LSTMs, to use as the encoder of a model.

    Ma and Hovy (2016) and Dozat and Manning (2017) use such a stack. Each call makes new layers.

    Args:
        num_layers: int, number of bidirectional layers.
        hidden_dim: int, the width of the output, an even number. Each direction has
            `hidden_dim / 2` units.
        cell: `"lstm"`, `"gru"`, `"rnn"`, or a Keras cell of `hidden_dim / 2` units. The stack uses
            copies of it.
        dropout: float, the dropout rate after each layer.
        name: str, the prefix of the layers' names.

    Call arguments:
        x: (B, T, D).
        each_layer: bool, whether to return a list with the output of each layer.

    Returns (B, T, hidden_dim).

    Raises:
        ValueError: `segment_ids` are given, which say that a row holds several documents. The
            documents would share a recurrent state.

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
                f"RecurrentStack(hidden_dim={self.hidden_dim}): expected an even number, because "
                f"each direction has half of it. Choose {self.hidden_dim + 1}."
            )

    def __call__(self, x, *, each_layer=False, segment_ids=None, positions=None):
        if segment_ids is not None:
            raise ValueError(
                "RecurrentStack was called with segment_ids (several documents in a row), but the "
                "documents would share a state. Build without packed=True, or with a "
                "TransformerEncoder."
            )
        outputs = []
        for i in range(self.num_layers):
            cell = get_cell(copy_part(self.cell), self.hidden_dim // 2)
            x, _ = RecurrentEncoder(cell, name=f"{self.name}_{i}")(x)
            x = keras.layers.Dropout(self.dropout, name=f"{self.name}_{i}_dropout")(x)
            outputs.append(x)
        return outputs if each_layer else x
