"""Functions that tell where files of KerasHub store the weights of our layers.

Each returns a dict from the name of a weight in our model to the name of its array in the file, or
to a `Conversion` of several arrays. `ours` is the path of a layer in our model. `theirs` is its
path in the file, without leading underscores, as in `Preset`. The arrays of a layer are named
`vars/0`, `vars/1`, ... in the order of their creation. Kernels have the same layout as ours.
"""

from keras_attention.pretrained.table_entries import ATTENTION, untransposed


def dense(ours, theirs):
    """Return {weight name: tensor name} for a dense layer or a convolution.

    `ours` is the path of the layer in our model, and `theirs` its path in the file.
    """
    return {f"{ours}/kernel": untransposed(f"{theirs}/vars/0"), f"{ours}/bias": f"{theirs}/vars/1"}


def layer_norm(ours, theirs):
    """Return {weight name: tensor name} for a layer normalization.

    `ours` is the path of the layer in our model, and `theirs` its path in the file.
    """
    return {f"{ours}/gamma": f"{theirs}/vars/0", f"{ours}/beta": f"{theirs}/vars/1"}


def rms_norm(ours, theirs):
    """Return {weight name: tensor name} for an RMS normalization.

    `ours` is the path of the layer in our model, and `theirs` its path in the file.
    """
    return {f"{ours}/scale": f"{theirs}/vars/0"}


def numbered(name, i):
    """Return the name that Keras gives to layer `i` of a class: `name`, `name_1`, `name_2`, ..."""
    return f"{name}_{i}" if i else name


def attention(ours, theirs):
    """Return {weight name: tensor name} for the four projections of attention.

    `ours` is the path of the layer in our model, and `theirs` its path in the file.
    """
    entries = {}
    for layer in ATTENTION:
        name = layer.removeprefix("attention_")
        entries |= dense(f"{ours}/{layer}", f"{theirs}/{name}_dense")
    return entries


def transformer(ours, theirs):
    """Return {weight name: tensor name} for a block, KerasHub's `TransformerEncoder`.

    `ours` is the path of the block in our model, and `theirs` its path in the file.
    """
    entries = attention(f"{ours}/attention", f"{theirs}/self_attention_layer")
    entries |= layer_norm(f"{ours}/attention_norm", f"{theirs}/self_attention_layer_norm")
    for name in ("intermediate", "output"):
        entries |= dense(f"{ours}/feed_forward/{name}", f"{theirs}/feedforward_{name}_dense")
    return entries | layer_norm(f"{ours}/feed_forward_norm", f"{theirs}/feedforward_layer_norm")
