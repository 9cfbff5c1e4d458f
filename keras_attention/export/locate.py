"""From the name of an op in a graph to the Keras layer that made it."""

import re


def layer_of(model, op_name):
    """Names the innermost layer of `model` that an op came from.

    Keras opens a name scope per layer, and TensorFlow keeps it in op names, in converter errors
    and in the tensor names of LiteRT files: `labeler_1/block_0_1/attention_1/MatrixInverse`. The
    numbers at the end make scopes unique (Keras enters each layer's scope twice, so the first
    call is `_1`); `dense_1` may thus be a call of `dense`, and that reading is tried first.

    Returns:
        str such as `"layer 'block_0/attention' (MultiHeadAttention)"`, or None when the name
        shows no layer.
    """
    path, layer = [], None
    children = {model.name: model}
    for part in re.split("[/;@]", op_name):
        child = children.get(re.sub(r"_\d+$", "", part), children.get(part))
        if child is None and layer is not None:
            break
        if child is not None:
            path, layer = [*path, child.name], child
            children = {
                inner.name: inner
                for inner in child._flatten_layers(include_self=False, recursive=False)
            }
    if layer is None:
        return None
    if layer is model:
        return f"model '{model.name}' (no layer of its own)"
    return f"layer '{'/'.join(path[1:])}' ({type(layer).__name__})"
