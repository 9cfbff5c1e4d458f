"""The rule that splits a weight among the devices of a mesh, by the roles of its axes."""

from keras_attention.core.token_layout import SEQUENCE

MESH_AXES = ("data", SEQUENCE, "model")
# The roles that are split along the mesh axis "model": each device computes some of the heads, of
# the inner width, of the vocabulary (Shoeybi et al., 2019, "Megatron-LM", section 3).
TENSOR = frozenset({"heads", "key_value_heads", "mlp", "vocabulary", "features"})
# Those split along "data" where parameters are fully sharded: each device keeps some, and all are
# gathered where they are used (Rajbhandari et al., 2020, "ZeRO", section 5.3).
FULLY_SHARDED = frozenset({"embed", "latent", "units"})


def split_weight(axes, shape, mesh, fully_sharded=False):
    """Return which mesh axis splits each axis of a weight, and why others do not.

    A role is split along its mesh axis if that divides the size, by the first axis of that kind in
    the weight. Vectors are not fully sharded: they take little memory, and each would be a message.

    Args:
        axes: the roles of the weight's axes, as `find_axes` returns them, or None.
        shape: its shape, a tuple of ints.
        mesh: dict, name of a mesh axis -> number of devices: `"data"`, `"model"`, or both.
        fully_sharded: bool, whether parameters are split along `"data"`, too.

    Returns:
        A tuple with the name of a mesh axis, or None, for each axis of the weight, and a list of
        sentences about those that could not be split.

    ```python
    import keras_attention as ka

    mesh, query = {"data": 2, "model": 4}, ("embed", "heads", "head_dim")
    split, _ = ka.distribution.split_weight(query, (64, 8, 16), mesh, fully_sharded=True)
    assert split == ("data", "model", None)
    split, reasons = ka.distribution.split_weight(query, (64, 6, 16), mesh)
    assert split == (None, None, None) and reasons == ["heads=6 is no multiple of model=4"]
    ```
    """
    split, reasons = [None] * len(shape), []
    for i, (role, size) in enumerate(zip(axes or (), shape, strict=False)):
        along = _mesh_axis(role, fully_sharded)
        devices = mesh.get(along, 1)
        if devices == 1 or along in split:
            continue
        if role in FULLY_SHARDED and sum(side > 1 for side in shape) < 2:
            reasons.append(f"a vector is not split along {along}")
        elif size % devices:
            reasons.append(f"{role}={size} is no multiple of {along}={devices}")
        else:
            split[i] = along
    return tuple(split), reasons


def _mesh_axis(role, fully_sharded):
    """Return the mesh axis along which a role may be split, or None."""
    if role in TENSOR:
        return "model"
    if role == "batch" or (fully_sharded and role in FULLY_SHARDED):
        return "data"
    return None
