"""Ring attention: the sequence is split among devices, which pass keys on in a ring."""

import keras

from keras_attention.attention.kernels.ring_tile import Tile
from keras_attention.core import token_layout


def find_obstacle(lengths, equation, visibility):
    """Return the reason (str) why ring attention cannot compute a call, or None if it can.

    `lengths` is (T, S), each an int, or None if dynamic. `equation` has the score, normalizer and
    position encoding of the call, and `visibility` its masks and positions.
    """
    if keras.backend.backend() != "jax":
        return f"it needs the JAX backend, and Keras runs on {keras.backend.backend()}"
    devices = token_layout.count_sequence_devices()
    if devices is None:
        return (
            "no active distribution splits the sequence among devices, such as "
            'RoleParallel({"data": 2, "sequence": 4})'
        )
    if equation.normalizer.exponents is None:
        return f"{equation.normalizer} needs all scores of a row at once"
    if None in lengths:
        return "the lengths are not known when the model is traced"
    for name, length in zip(("queries", "keys"), lengths, strict=True):
        if length % devices or not length:
            return f"{length} {name} are not split evenly among sequence={devices} devices"
    return None


def find_advantage(lengths, visibility):
    """Return the reason (str) why ring attention is the best choice for a call, or None.

    Ring attention is the best choice if the active distribution splits the sequence among devices.
    `lengths` and `visibility` are not used. Every kernel has this function, with the same
    arguments.
    """
    devices = token_layout.count_sequence_devices()
    return f"the sequence is split among {devices} devices" if devices > 1 else None


def ring(query, key, value, equation, visibility):
    """Compute attention on JAX for a sequence that is split among devices (Liu et al., 2023).

    The arguments and the output are the same as in `dense`. None is returned for the weights. Each
    device keeps its own queries. Keys and values, with their positions and masks, travel from
    device to device, and each device updates a running softmax (Milakov and Gimelshein, 2018). The
    whole sequence is never gathered on one device, forward or backward. If the mask has a band,
    keys travel only as far as the band reaches.
    """
    from keras_attention.attention.kernels import ring_jax

    tile = Tile(equation, visibility)
    rows, columns = tile.rows(query), tile.columns(key, value)
    reach = None
    if visibility.mask is not None and visibility.positions_are_indices:
        reach = visibility.mask.reach()
        reach = None if reach.tokens else reach
    return ring_jax.go_around(tile, rows, columns, reach), None
