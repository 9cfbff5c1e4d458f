"""Attention over a sequence that is split among devices: keys and values travel in a ring."""

import keras

from keras_attention.attention.kernels.ring_tile import Tile
from keras_attention.core import token_layout


def refuses(lengths, equation, visibility):
    """Return why it cannot compute an attention, or None."""
    if keras.backend.backend() != "jax":
        return f"messages between devices are JAX's, and Keras runs on {keras.backend.backend()}"
    devices = token_layout.count_sequence_devices()
    if devices is None:
        return (
            "no distribution is active that splits a sequence among devices, such as "
            'RoleParallel({"data": 2, "sequence": 4})'
        )
    if equation.normalizer.exponents is None:
        return f"{equation.normalizer} needs all scores of a row at once, and has no online form"
    if None in lengths:
        return "the lengths are not known when the model is traced"
    for name, length in zip(("queries", "keys"), lengths, strict=True):
        if length % devices or not length:
            return f"{length} {name} are not split evenly among sequence={devices} devices"
    return None


def pays(lengths, visibility):
    """Return why it is the kernel to take, or None."""
    devices = token_layout.count_sequence_devices()
    return f"the sequence is split among {devices} devices" if devices > 1 else None


def ring(query, key, value, equation, visibility):
    """As `dense`, on JAX, for a sequence that is split among devices (Liu et al., 2023).

    Each device keeps its queries. Keys, values, their positions and their masks go from device to
    device, and a softmax is added up on the way (Milakov and Gimelshein, 2018): memory is a
    device's share of the sequence, forward and backward, and nothing is gathered. Where the mask
    has a band, keys travel no further than it reaches.
    """
    from keras_attention.attention.kernels import ring_jax

    tile = Tile(equation, visibility)
    rows, columns = tile.rows(query), tile.columns(key, value)
    reach = None
    if visibility.mask is not None and visibility.positions_are_indices:
        reach = visibility.mask.reach()
        reach = None if reach.tokens else reach
    return ring_jax.go_around(tile, rows, columns, reach), None
