"""Helpers for Keras's recurrent cells: create them by name, stack them, and run them."""

import contextlib
import copy

import keras
from keras import ops

from keras_attention.core import keras_internals

NAMES = {
    "gru": keras.layers.GRUCell,
    "lstm": keras.layers.LSTMCell,
    "rnn": keras.layers.SimpleRNNCell,
}


def get_cell(identifier, units, num_layers=1):
    """Return the Keras cell that `identifier` describes.

    Args:
        identifier: `"gru"`, `"lstm"`, `"rnn"`, a Keras cell, or the config of a cell.
        units: int, the size of the cell. Only used if `identifier` is a name.
        num_layers: int, the number of stacked cells. Only used if `identifier` is a name.

    Returns:
        A Keras cell, or a `keras.layers.StackedRNNCells` if there are several layers.

    Raises:
        ValueError: the name is unknown.

    ```python
    import keras
    import keras_attention as ka

    assert isinstance(ka.recurrent.get_cell("gru", 8), keras.layers.GRUCell)
    assert len(ka.recurrent.get_cell("lstm", 8, num_layers=2).cells) == 2
    ```
    """
    if not isinstance(identifier, str):
        return check_cell(identifier)
    if identifier not in NAMES:
        raise ValueError(
            f"Unknown cell {identifier!r}. Known: {', '.join(NAMES)}. A cell can also be given as "
            "a Keras cell, such as keras.layers.GRUCell(64)."
        )
    cells = [NAMES[identifier](units, name=f"cell_{i}") for i in range(num_layers)]
    return cells[0] if num_layers == 1 else keras.layers.StackedRNNCells(cells, name="cells")


def check_cell(cell):
    """Return `cell`, or deserialize it from a config. Raise a ValueError for anything else."""
    if isinstance(cell, dict):  # a copy, because Keras modifies the config of stacked cells
        cell = keras.saving.deserialize_keras_object(copy.deepcopy(cell))
    if not isinstance(cell, keras.layers.Layer) or not hasattr(cell, "state_size"):
        raise ValueError(
            f"cell={cell!r}: expected a layer with a state_size, such as keras.layers.GRUCell(64)."
        )
    return cell


def state_sizes(cell):
    """Return a flat list with the sizes of all states of a Keras cell, or of stacked cells."""
    return [int(size) for size in keras.tree.flatten(cell.state_size)]


def output_size(cell):
    """Return the size of the output of a Keras cell.

    The size is the attribute `output_size` or, if the cell has none, the size of its first state.
    For stacked cells, the result is the size of the last cell's output.
    """
    cell = cell.cells[-1] if isinstance(cell, keras.layers.StackedRNNCells) else cell
    size = getattr(cell, "output_size", None)
    return state_sizes(cell)[0] if size is None else size


def query_index(cell):
    """Return the index of the state that attention uses as query, in the flat list of states.

    `cell` is a Keras cell, or `StackedRNNCells`. The query is the hidden state of the last layer.
    """
    if isinstance(cell, keras.layers.StackedRNNCells):
        return len(state_sizes(cell)) - len(state_sizes(cell.cells[-1]))
    return 0


def step_cell(cell, inputs, states, training=None):
    """Run one step of a Keras cell on inputs (B, D) and a flat list of states.

    Return the output (B, size of the cell) and the flat list of new states. `training` is a bool,
    as in Keras.
    """
    is_one = isinstance(cell.state_size, int)
    structure = [cell.state_size] if is_one else list(cell.state_size)
    packed = keras.tree.pack_sequence_as(structure, list(states))
    arguments = {"training": training} if keras_internals.takes_training(cell) else {}
    output, new = cell(inputs, packed, **arguments)
    return output, keras.tree.flatten(new)


@contextlib.contextmanager
def hold_dropout(cell, batch_size, width, training):
    """Keep the dropout masks of an `AttentionCell` the same for all steps in a `with` block.

    `batch_size` is B and `width` the last axis of the cell's inputs (B, width). Dropout is active
    only if `training` is true.
    """
    if training:
        cell.get_dropout_mask(ops.ones((batch_size, width), dtype=cell.compute_dtype))
    yield
    if training:
        cell.reset_dropout_mask()


def sample_dropout(cell, batch_size, width):
    """Sample the dropout masks of a Keras cell before a loop over time, to use them in all steps.

    The cell stores the masks. JAX does not allow a tensor that is created in a loop to be stored.
    `batch_size` is B and `width` the last axis of the cell's inputs (B, width).
    """
    for each in unstack_cells(cell):
        if isinstance(each, keras_internals.DropoutRNNCell):
            each.get_dropout_mask(ops.ones((batch_size, width), dtype=cell.compute_dtype))
            state = ops.ones((batch_size, state_sizes(each)[0]), dtype=cell.compute_dtype)
            each.get_recurrent_dropout_mask(state)
        width = output_size(each)


def forget_dropout(cell):
    """Remove the masks of `sample_dropout` from a cell, so that the next loop gets new masks."""
    for each in unstack_cells(cell):
        if isinstance(each, keras_internals.DropoutRNNCell):
            each.reset_dropout_mask()
            each.reset_recurrent_dropout_mask()


def unstack_cells(cell):
    """Return the list of cells of a `StackedRNNCells`, or a list with the cell itself."""
    return cell.cells if isinstance(cell, keras.layers.StackedRNNCells) else [cell]
