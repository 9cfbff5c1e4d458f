"""`RoleParallel`: data, fully sharded and tensor parallel training by the roles of weights."""

import math

import keras
import numpy as np

from keras_attention import keras_internals
from keras_attention.checks import check_whole_number
from keras_attention.distribution.report import LayoutReport, WeightLayout
from keras_attention.distribution.split import MESH_AXES, split_weight
from keras_attention.token_layout import SEQUENCE
from keras_attention.weight_axes import find_axes


class RoleParallel(keras.distribution.ModelParallel):
    """Splits the weights of any model by what their axes are, and every batch among devices.

    For the JAX backend, whose compiler adds the messages between devices: a model, its `fit` and
    its losses are as on one device. Set it before the model is built or loaded.

    Along the mesh axis `"data"` each device has its share of a batch, and, `fully_sharded`, of the
    weights and of what the optimizer keeps of them. Along `"model"` each has some of the heads, of
    the inner width of the feed-forward networks, of the vocabulary. What is split is said by the
    roles that each layer declares (`weight_axes`, `name_axes`), and by `split_weight`: where a mesh
    axis does not divide a size, that axis of the weight stays whole on every device, and `report`
    says so. A batch that `"data"` does not divide, such as the last one, is computed whole on every
    device; of several processes each has to bring a batch that does.

    Along `"sequence"` each device has some of the tokens of every text: what `"data"` is to the
    first axis of a batch, it is to the second. Attention goes around in a ring (Liu et al., 2023),
    by the kernel `"ring"` of `ka.attention`, wherever that can compute it and both lengths divide;
    elsewhere the compiler gathers keys and values.

    Args:
        mesh: dict, name of an axis -> how many devices, such as `{"data": 2, "model": 4}` or
            `{"data": 2, "sequence": 4}`; their product is the number of devices. Or a
            `keras.distribution.DeviceMesh` with such names.
        fully_sharded: bool, whether weights are split along `"data"`, too.
        devices: list, as `keras.distribution.list_devices()` gives it, which is the default.
        auto_shard_dataset: bool, as in `keras.distribution.ModelParallel`.

    Example:

    ```python
    import keras
    import keras_attention as ka

    if keras.backend.backend() == "jax":
        devices = keras.distribution.list_devices()
        layout = ka.distribution.RoleParallel({"data": len(devices)}, fully_sharded=True)
        with layout.scope():
            model = ka.models.causal_language_model(64, num_layers=1, num_heads=2, hidden_dim=16)
        print(layout.report(model))
    ```
    """

    def __init__(self, mesh, *, fully_sharded=False, devices=None, auto_shard_dataset=True):
        sizes = _read_mesh(mesh)
        _check_backend()
        if isinstance(mesh, keras.distribution.DeviceMesh):
            order = [mesh.axis_names.index(name) for name in sizes if name in mesh.axis_names]
            devices = np.transpose(mesh.devices, order).flatten().tolist()
        elif devices is None:
            devices = keras.distribution.list_devices()
        count = math.prod(sizes.values())
        if count != len(devices):
            raise ValueError(
                f"mesh={sizes} is of {count} devices, and there are {len(devices)}. Expected a "
                "product as large; or name the devices to be used, "
                f"devices=keras.distribution.list_devices()[:{count}]."
            )
        self.mesh, self.fully_sharded = sizes, bool(fully_sharded)
        self.sequence_devices = sizes.get(SEQUENCE)
        mesh = keras.distribution.DeviceMesh(tuple(sizes.values()), list(sizes), devices)
        super().__init__(
            layout_map=keras.distribution.LayoutMap(mesh),
            batch_dim_name="data",
            auto_shard_dataset=auto_shard_dataset,
        )
        if self.sequence_devices and sizes["data"] % self.num_processes:
            raise ValueError(
                f"mesh={sizes} splits texts among {self.num_processes} processes, each of which "
                "reads whole texts. Give data a multiple of their number."
            )

    def get_variable_layout(self, variable):
        """The `keras.distribution.TensorLayout` of a variable: split if a layer is making it."""
        if (layout := keras_internals.layout_of(variable)) is not None:
            return layout
        layer = keras_internals.find_maker(variable)
        planned = self._plan(layer, variable)
        return keras.distribution.TensorLayout(planned.split, self.device_mesh)

    def get_data_layout(self, data_shape):
        """The `keras.distribution.TensorLayout` of an array of a batch, by its first two axes."""
        split = [None] * len(data_shape)
        if split and (self.num_processes > 1 or data_shape[0] % self.mesh["data"] == 0):
            split[0] = "data"
        if len(split) in (2, 3) and self._divides(SEQUENCE, data_shape[1]):  # an image has more
            split[1] = SEQUENCE
        return keras.distribution.TensorLayout(split, self.device_mesh)

    def get_token_layout(self, shape, roles=()):
        """The `keras.distribution.TensorLayout` of vectors of tokens, within a model.

        Args:
            shape: (B, T, ...), or (B, D) of vectors of whole texts.
            roles: those of the last axes, which are split as those of weights are.

        Returns:
            A layout, or None to leave it to the compiler, where B or T is not a number.
        """
        if not all(isinstance(size, int) for size in shape):
            return None
        split = ["data" if self._divides("data", shape[0]) else None] + [None] * (len(shape) - 1)
        if len(shape) > 2 and self._divides(SEQUENCE, shape[1]):
            split[1] = SEQUENCE
        if roles:
            split[-len(roles) :] = split_weight(roles, shape[-len(roles) :], self.mesh)[0]
        return keras.distribution.TensorLayout(split, self.device_mesh)

    def _divides(self, axis, size):
        """Whether the mesh has this axis, and it splits as many into equal shares."""
        return axis in self.mesh and size % self.mesh[axis] == 0

    def report(self, model):
        """How each weight of a model is laid out, and why where it is not split.

        Args:
            model: a built `keras.Model` or layer.

        Returns:
            `LayoutReport`.
        """
        owners = {
            id(variable): layer
            for layer in keras_internals.all_layers(model)
            for variable in keras_internals.own_variables(layer)
        }
        rows = []
        for weight in model.weights:
            planned = self._plan(owners.get(id(weight)), weight)
            layout = keras_internals.layout_of(weight)
            if layout is None or layout.device_mesh is not self.device_mesh:
                planned = WeightLayout(
                    weight.path,
                    planned.shape,
                    planned.axes,
                    (None,) * len(planned.shape),
                    "made before this layout was set: set it first",
                )
            rows.append(planned)
        return LayoutReport(self.mesh, tuple(rows))

    def _plan(self, layer, variable):
        """The `WeightLayout` of a variable of `layer`, or of one that belongs to no layer."""
        shape = tuple(variable.shape)
        axes = None if layer is None else find_axes(layer, variable.name, shape)
        split, reasons = split_weight(axes, shape, self.mesh, self.fully_sharded)
        if axes is None and len(shape) > 1:
            reasons = ["no roles: weight_axes of its layer does not name it"]
        elif not any(split) and not reasons:
            reasons = ["no axis that this mesh splits"]
        return WeightLayout(variable.path, shape, axes, split, "; ".join(reasons))


def _read_mesh(mesh):
    """{name of a mesh axis: how many devices}, "data" first and always there."""
    if isinstance(mesh, keras.distribution.DeviceMesh):
        mesh = dict(zip(mesh.axis_names, mesh.shape, strict=True))
    if not isinstance(mesh, dict) or not mesh:
        raise ValueError(
            f"mesh={mesh!r}: expected a dict with the number of devices of each axis, such as "
            '{"data": 2, "model": 4}, or a keras.distribution.DeviceMesh.'
        )
    if unknown := [name for name in mesh if name not in MESH_AXES]:
        raise ValueError(
            f"mesh={mesh!r} has the axis {unknown[0]!r}. Expected one or more of "
            f"{', '.join(map(repr, MESH_AXES))}."
        )
    sizes = {name: check_whole_number("RoleParallel", name, mesh[name]) for name in mesh}
    return {name: sizes.get(name, 1) for name in MESH_AXES if name == "data" or name in sizes}


def _check_backend():
    if keras.backend.backend() != "jax":
        raise ValueError(
            f"RoleParallel lays weights out on JAX alone, and Keras runs on "
            f"{keras.backend.backend()}. Set the environment variable KERAS_BACKEND=jax before "
            "Keras is imported."
        )
