"""`RoleParallel`: data, fully sharded and tensor parallel training by the roles of weights."""

import math

import keras
import numpy as np

from keras_attention.core import keras_internals
from keras_attention.core.checks import check_whole_number
from keras_attention.core.token_layout import SEQUENCE, BatchLayout
from keras_attention.core.versions import require_keras
from keras_attention.core.weight_axes import find_axes
from keras_attention.data.shares import Share, read_share
from keras_attention.distribution.report import LayoutReport, WeightLayout
from keras_attention.distribution.split import MESH_AXES, split_weight
from keras_attention.files.extras import import_tensorflow


class RoleParallel(BatchLayout, keras.distribution.ModelParallel):
    """Splits the weights of any model by the roles of their axes, and every batch, among devices.

    It is for the JAX backend, whose compiler adds the messages between devices: a model, its `fit`
    and its losses stay as on one device. Set it before the model is built or loaded.

    Along the mesh axis `"data"` each device has a share of the batch, and, if `fully_sharded`, of
    the weights and their optimizer state. Along `"model"` each has some of the heads, of the inner
    width of the feed-forward networks, of the vocabulary. The roles that each layer declares
    (`weight_axes`, `name_axes`) and `split_weight` decide what is split. If a mesh axis does not
    divide a size, that axis of the weight stays whole on every device, and `report` says so. A
    batch that `"data"` does not divide, such as the last one, is computed whole on every device.

    With several processes, each passes the same batches to `fit`, as a `tf.data.Dataset`, and keeps
    the rows of its devices. Of the batches of `ka.data` no other rows are read. With
    `auto_shard_dataset=False` each process passes rows of its own.

    Along `"sequence"` each device has some of the tokens of every text: it splits the second axis
    of a batch as `"data"` splits the first. Attention goes around in a ring (Liu et al., 2023),
    with the kernel `"ring"` of `ka.attention`, if that can compute it and both lengths divide.
    Otherwise the compiler gathers keys and values.

    Args:
        mesh: dict, name of an axis -> number of devices, such as `{"data": 2, "model": 4}` or
            `{"data": 2, "sequence": 4}`. Their product is the number of devices. Or a
            `keras.distribution.DeviceMesh` with such names.
        fully_sharded: bool, whether weights are split along `"data"`, too.
        devices: list, by default `keras.distribution.list_devices()`.
        auto_shard_dataset: bool, as in `keras.distribution.ModelParallel`.

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
        require_keras("3.15", "ka.distribution.RoleParallel")  # which counts processes
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
        keras_internals.lay_out_every_batch()
        keras_internals.gather_predictions()
        if self.sequence_devices and sizes["data"] % self.num_processes:
            raise ValueError(
                f"mesh={sizes} splits texts among {self.num_processes} processes, each of which "
                "reads whole texts. Give data a multiple of their number."
            )

    def get_variable_layout(self, variable):
        """Return the `TensorLayout` of a variable, split if a layer is making it."""
        if (layout := keras_internals.layout_of(variable)) is not None:
            return layout
        layer = keras_internals.find_maker(variable)
        planned = self._plan(layer, variable)
        return keras.distribution.TensorLayout(planned.split, self.device_mesh)

    def distribute_dataset(self, dataset):
        """Return the rows that this process reads of a `tf.data.Dataset`.

        Returns:
            A dataset for `lay_out_batch`: pairs of these rows, and the number of rows in the whole
            batch. `dataset` itself in a single process, and if `auto_shard_dataset` is False.
        """
        if not self._reads_shares:
            return dataset
        tf = import_tensorflow("distribute_dataset")
        if not isinstance(dataset, tf.data.Dataset):
            raise ValueError(
                f"fit was given a {type(dataset).__name__}, whose batches cannot be shared among "
                f"{self.num_processes} processes: expected a tf.data.Dataset. Or let each process "
                "give its own rows, with auto_shard_dataset=False."
            )
        return read_share(tf, dataset, self.share)

    @property
    def share(self):
        """The `Share` of a batch that the devices of this process compute."""
        devices = self.device_mesh.backend_mesh.devices.reshape(self.mesh["data"], -1)
        own = [any(device.process_index == self._process_id for device in row) for row in devices]
        return Share(self.mesh["data"], tuple(np.flatnonzero(own).tolist()))

    def lay_out_batch(self, batch):
        """Return a batch as arrays on the devices of the mesh.

        Args:
            batch: structure of arrays, all rows of a batch, or what `distribute_dataset` returns.
        """
        rows = None
        if self._reads_shares:
            batch, rows = batch
        return keras.tree.map_structure(lambda array: self._place(array, rows), batch)

    def gather_outputs(self, outputs):
        """Return what `predict` has computed for a batch, whole on every process."""
        if self.num_processes == 1:
            return outputs
        from jax.experimental import multihost_utils

        return keras.tree.map_structure(
            lambda array: multihost_utils.process_allgather(array, tiled=True), outputs
        )

    @property
    def _reads_shares(self):
        return self.num_processes > 1 and self.auto_shard_dataset

    def _place(self, array, rows):
        """Place an array of the rows of this process, out of `rows`, on the devices of the mesh."""
        if array is None:
            return None
        import jax

        shape = array.shape if rows is None else (int(rows), *array.shape[1:])
        layout = self._data_layout(shape, rows is not None or self.num_processes == 1)
        whole = None if rows is None else shape
        return jax.make_array_from_process_local_data(layout.backend_layout, array, whole)

    def get_data_layout(self, data_shape):
        """Return the `TensorLayout` of an array of a batch, by its first two axes."""
        return self._data_layout(data_shape, whole=self.num_processes == 1)

    def _data_layout(self, shape, whole):
        """Return the layout of an array by its shape, of a whole batch or a process's rows."""
        split = [None] * len(shape)
        if split and (not whole or shape[0] % self.mesh["data"] == 0):
            split[0] = "data"
        if len(split) in (2, 3) and self._divides(SEQUENCE, shape[1]):  # an image has more
            split[1] = SEQUENCE
        return keras.distribution.TensorLayout(split, self.device_mesh)

    def get_token_layout(self, shape, roles=()):
        """Return the `keras.distribution.TensorLayout` of vectors of tokens, within a model.

        Args:
            shape: (B, T, ...), or (B, D) for vectors of whole texts.
            roles: those of the last axes, which are split like those of weights.

        Returns:
            A layout, or None if B or T is not a number, to leave it to the compiler.
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
        """Return whether the mesh has this axis, and it divides `size`."""
        return axis in self.mesh and size % self.mesh[axis] == 0

    def report(self, model):
        """Return how each weight of a model is laid out, and why if it is not split.

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
        """Return the `WeightLayout` of a variable of `layer`, or of no layer."""
        shape = tuple(variable.shape)
        axes = None if layer is None else find_axes(layer, variable.name, shape)
        split, reasons = split_weight(axes, shape, self.mesh, self.fully_sharded)
        if axes is None and len(shape) > 1:
            reasons = ["no roles: weight_axes of its layer does not name it"]
        elif not any(split) and not reasons:
            reasons = ["no axis that this mesh splits"]
        return WeightLayout(variable.path, shape, axes, split, "; ".join(reasons))


def _read_mesh(mesh):
    """Return {name of a mesh axis: number of devices}, with "data" first and always there."""
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
