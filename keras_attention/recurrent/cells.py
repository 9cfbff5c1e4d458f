"""Keras's recurrent cells: found by name, stacked, stepped with their states in a flat list."""

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
    """Return a cell for a name, a Keras cell, or a cell's config.

    Args:
        identifier: `"gru"`, `"lstm"`, `"rnn"`, a Keras cell, or a cell's config.
        units: int, the size of a cell made from its name.
        num_layers: int, how many cells made from a name are stacked.

    Returns:
        A Keras cell. Several are a `keras.layers.StackedRNNCells`.

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
    """Return `cell`, or the cell of a config, or raise an error if it is no Keras cell."""
    if isinstance(cell, dict):  # a copy: Keras takes the config of stacked cells apart
        cell = keras.saving.deserialize_keras_object(copy.deepcopy(cell))
    if not isinstance(cell, keras.layers.Layer) or not hasattr(cell, "state_size"):
        raise ValueError(
            f"cell={cell!r}: expected a Keras cell, such as keras.layers.GRUCell(64), which is a "
            "layer with a state_size."
        )
    return cell


def copy_cell(cell, **changes):
    """Return another cell of the same config."""
    config = {**cell.get_config(), **changes}
    return type(cell).from_config(config)


def state_sizes(cell):
    """Return the sizes of all states of `cell`, with those of stacked cells in order."""
    return [int(size) for size in keras.tree.flatten(cell.state_size)]


def output_size(cell):
    """Return the size of the output of `cell`: its `output_size`, or that of its first state."""
    cell = cell.cells[-1] if isinstance(cell, keras.layers.StackedRNNCells) else cell
    size = getattr(cell, "output_size", None)
    return state_sizes(cell)[0] if size is None else size


def query_index(cell):
    """Return the index of the state that attends: the hidden state of the last layer."""
    if isinstance(cell, keras.layers.StackedRNNCells):
        return len(state_sizes(cell)) - len(state_sizes(cell.cells[-1]))
    return 0


def zero_states(cell, batch_size):
    """Return a list of zeros (B, size), one for each state."""
    return [ops.zeros((batch_size, size), dtype=cell.compute_dtype) for size in state_sizes(cell)]


def step_cell(cell, inputs, states, training=None):
    """Run one step on (B, D) and a list of states. Return the output (B, U) and new states."""
    is_one = isinstance(cell.state_size, int)
    structure = [cell.state_size] if is_one else list(cell.state_size)
    packed = keras.tree.pack_sequence_as(structure, list(states))
    arguments = {"training": training} if keras_internals.takes_training(cell) else {}
    output, new = cell(inputs, packed, **arguments)
    return output, keras.tree.flatten(new)


@contextlib.contextmanager
def hold_dropout(cell, batch_size, width, training):
    """Let an `AttentionCell` drop the same inputs (B, width) at every step inside."""
    if training:
        cell.get_dropout_mask(ops.ones((batch_size, width), dtype=cell.compute_dtype))
    yield
    if training:
        cell.reset_dropout_mask()


def draw_dropout(cell, batch_size, width):
    """Draw the dropout of a cell, the same at every step, before a loop begins.

    JAX refuses random numbers that are drawn inside the loop and kept outside of it.
    """
    for each in unstack_cells(cell):
        if isinstance(each, keras_internals.DropoutRNNCell):
            each.get_dropout_mask(ops.ones((batch_size, width), dtype=cell.compute_dtype))
            state = ops.ones((batch_size, state_sizes(each)[0]), dtype=cell.compute_dtype)
            each.get_recurrent_dropout_mask(state)
        width = output_size(each)


def forget_dropout(cell):
    """Drop the masks of `draw_dropout`, so that the next loop draws new ones."""
    for each in unstack_cells(cell):
        if isinstance(each, keras_internals.DropoutRNNCell):
            each.reset_dropout_mask()
            each.reset_recurrent_dropout_mask()


def unstack_cells(cell):
    """Return the cells of a stack, first to last, or the cell itself."""
    return cell.cells if isinstance(cell, keras.layers.StackedRNNCells) else [cell]
