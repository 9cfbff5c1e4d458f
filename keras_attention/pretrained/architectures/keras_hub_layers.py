"""Entries of tables for the layers of KerasHub, whose kernels are in our layout already.

`theirs` is a path in a file without the underscores in front of its names, as `Preset` gives it;
a layer's arrays are `vars/0`, `vars/1`, in the order that the layer made them.
"""

from keras_attention.pretrained.weights import as_is


def dense(ours, theirs, bias=True):
    """Return the entries of a linear layer, also of one with several axes, or of a convolution."""
    found = {f"{ours}/kernel": as_is(f"{theirs}/vars/0")}
    return found | ({f"{ours}/bias": f"{theirs}/vars/1"} if bias else {})


def layer_norm(ours, theirs):
    """Return the entries of a layer normalization."""
    return {f"{ours}/gamma": f"{theirs}/vars/0", f"{ours}/beta": f"{theirs}/vars/1"}


def rms_norm(ours, theirs):
    """Return the entry of an RMS normalization."""
    return {f"{ours}/scale": f"{theirs}/vars/0"}


def numbered(name, i):
    """Return the name of the `i`-th layer of a class: the first has no number."""
    return f"{name}_{i}" if i else name


def attention(ours, theirs, bias=True, output_bias=None):
    """Return the entries of the four projections of an attention."""
    output_bias = bias if output_bias is None else output_bias
    found = dense(f"{ours}/attention_output", f"{theirs}/output_dense", output_bias)
    for name in ("query", "key", "value"):
        found |= dense(f"{ours}/{name}", f"{theirs}/{name}_dense", bias)
    return found


def transformer(ours, theirs):
    """The entries of a block that KerasHub's `TransformerEncoder` or `TransformerDecoder` is."""
    found = attention(f"{ours}/attention", f"{theirs}/self_attention_layer")
    found |= layer_norm(f"{ours}/attention_norm", f"{theirs}/self_attention_layer_norm")
    for name in ("intermediate", "output"):
        found |= dense(f"{ours}/feed_forward/{name}", f"{theirs}/feedforward_{name}_dense")
    return found | layer_norm(f"{ours}/feed_forward_norm", f"{theirs}/feedforward_layer_norm")
