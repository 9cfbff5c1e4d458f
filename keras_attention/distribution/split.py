"""`split_weight`: chooses how to split a weight over devices, by the roles of its axes."""

from keras_attention.core.token_layout import SEQUENCE

MESH_AXES = ("data", SEQUENCE, "model")
# Roles that the mesh axis "model" splits (Shoeybi et al., 2019, "Megatron-LM", section 3).
TENSOR = frozenset({"heads", "key_value_heads", "mlp", "vocabulary", "features"})
# Roles that "data" splits if parameters are fully sharded. These weights are gathered for each use
# (Rajbhandari et al., 2020, "ZeRO", section 5.3).
FULLY_SHARDED = frozenset({"embed", "latent", "units"})


def split_weight(axes, shape, mesh, fully_sharded=False):
    """Choose how to split a weight over a mesh, a grid of devices, as `RoleParallel` does.

    The role of an axis, such as `"heads"`, determines the mesh axis that may split it. Each mesh
    axis splits at most one axis of a weight, the first axis with a matching role whose size is a
    multiple of the number of devices. Vectors are never split along `"data"`, because they take
    little memory.

    Args:
        axes: tuple of str, the role of each axis, as `find_axes` returns them. None means that the
            weight is not split.
        shape: tuple of int, the shape of the weight.
        mesh: dict {`"data"` or `"model"`: number of devices}.
        fully_sharded: bool, whether `"data"` splits weights, too.

    Returns:
        Two values: a tuple with the name of a mesh axis, or None, for each axis of the weight, and
        a list of str, the reasons why axes could not be split.

    ```python
    import keras_attention as ka

    mesh, query = {"data": 2, "model": 4}, ("embed", "heads", "head_dim")
    split, _ = ka.distribution.split_weight(query, (64, 8, 16), mesh, fully_sharded=True)
    assert split == ("data", "model", None)
    split, reasons = ka.distribution.split_weight(query, (64, 6, 16), mesh)
    assert split == (None, None, None) and reasons == ["heads=6 is not a multiple of model=4"]
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
            reasons.append(f"{role}={size} is not a multiple of {along}={devices}")
        else:
            split[i] = along
    return tuple(split), reasons


def _mesh_axis(role, fully_sharded):
    """Return the mesh axis, such as `"model"`, that may split an axis with this role, or None."""
    if role in TENSOR:
        return "model"
    if role == "batch" or (fully_sharded and role in FULLY_SHARDED):
        return "data"
    return None
