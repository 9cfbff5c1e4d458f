"""`RoleParallel`: a Keras distribution for data, fully sharded and tensor parallel training."""

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
    """A Keras distribution that splits batches and weights among several devices, on JAX.

    Use it to train a model on more data per step, or a model too large for one device. Activate the
    distribution before you build or load the model. The model, `fit` and the losses do not change,
    because JAX's compiler adds the communication between devices.

    A mesh is the devices, arranged in a grid. It has up to three axes. `"data"` splits the batch.
    If `fully_sharded`, it also splits the weights and their optimizer state. `"model"` splits
    attention heads, the inner width of feed-forward networks, and the vocabulary. `"sequence"`
    splits the second axis of a batch, the tokens of a text.

    `split_weight` chooses the axes of a weight by the roles that its layer declares (`weight_axes`,
    `name_axes`), such as `"heads"`. If the size of an axis is not a multiple of the number of
    devices, the weight is not split along this axis, and `report` lists the reason. If the size of
    a batch, such as the last batch, is not a multiple of `"data"`, every device computes the whole
    batch.

    With several processes, all must pass the same batches to `fit`, as a `tf.data.Dataset`. Each
    process then keeps only the rows for its devices. A dataset from `ka.data` reads only these
    rows. With `auto_shard_dataset=False`, each process must pass its own rows.

    With `"sequence"`, attention runs the kernel `"ring"` of `ka.attention` (Liu et al., 2023) if
    the layer supports it and both lengths are multiples of the number of devices. Otherwise the
    compiler gathers keys and values.

    Args:
        mesh: dict {name of a mesh axis: number of devices}, such as `{"data": 2, "model": 4}` or
            `{"data": 2, "sequence": 4}`. The product must be the number of devices. Or a
            `keras.distribution.DeviceMesh` with these names.
        fully_sharded: bool, whether `"data"` splits weights, too.
        devices: list of devices. None means `keras.distribution.list_devices()`.
        auto_shard_dataset: bool, whether every process passes the whole batch and keeps only its
            rows. False if each process passes only its own rows.

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
        require_keras("3.15", "ka.distribution.RoleParallel")  # the first that counts processes
        if isinstance(mesh, keras.distribution.DeviceMesh):
            order = [mesh.axis_names.index(name) for name in sizes if name in mesh.axis_names]
            devices = np.transpose(mesh.devices, order).flatten().tolist()
        elif devices is None:
            devices = keras.distribution.list_devices()
        count = math.prod(sizes.values())
        if count != len(devices):
            raise ValueError(
                f"mesh={sizes} has {count} devices, but {len(devices)} are available. Change the "
                "mesh, or choose the devices: "
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
                f"mesh={sizes} splits each text among {self.num_processes} processes, but a "
                "process reads whole text. Set data to a multiple of the number of processes."
            )

    def get_variable_layout(self, variable):
        """Return the `TensorLayout` of a variable. Only variables of layers are split."""
        if (layout := keras_internals.layout_of(variable)) is not None:
            return layout
        layer = keras_internals.find_maker(variable)
        planned = self._plan(layer, variable)
        return keras.distribution.TensorLayout(planned.split, self.device_mesh)

    def distribute_dataset(self, dataset):
        """Return a `tf.data.Dataset` whose batches have only the rows that this process needs.

        Its elements are pairs for `lay_out_batch`: the rows of this process, and the number of rows
        of the whole batch. With a single process, or if `auto_shard_dataset` is False, `dataset` is
        returned unchanged. Raise a ValueError if there are several processes, and `dataset` is not
        a `tf.data.Dataset`.
        """
        if not self._reads_shares:
            return dataset
        tf = import_tensorflow("distribute_dataset")
        if not isinstance(dataset, tf.data.Dataset):
            raise ValueError(
                f"fit got a {type(dataset).__name__}, whose batches {self.num_processes} processes "
                "cannot share: expected a tf.data.Dataset. Or let each process pass its own rows, "
                "with auto_shard_dataset=False."
            )
        return read_share(tf, dataset, self.share)

    @property
    def share(self):
        """Return the `Share`, the rows of each batch that the devices of this process compute."""
        devices = self.device_mesh.backend_mesh.devices.reshape(self.mesh["data"], -1)
        own = [any(device.process_index == self._process_id for device in row) for row in devices]
        return Share(self.mesh["data"], tuple(np.flatnonzero(own).tolist()))

    def lay_out_batch(self, batch):
        """Place the arrays of a batch on the devices of the mesh, and return them.

        Args:
            batch: structure of arrays with all rows of a batch, or an element of the dataset from
                `distribute_dataset`.
        """
        rows = None
        if self._reads_shares:
            batch, rows = batch
        return keras.tree.map_structure(lambda array: self._place(array, rows), batch)

    def gather_outputs(self, outputs):
        """Return the outputs of a batch in `predict` with the rows of all processes."""
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
        """Place an array on the devices of the mesh.

        `rows` is the number of rows of the whole batch if `array` holds only the rows of this
        process, otherwise None.
        """
        if array is None:
            return None
        import jax

        shape = array.shape if rows is None else (int(rows), *array.shape[1:])
        layout = self._data_layout(shape, rows is not None or self.num_processes == 1)
        whole = None if rows is None else shape
        return jax.make_array_from_process_local_data(layout.backend_layout, array, whole)

    def get_data_layout(self, data_shape):
        """Return the `TensorLayout` of an array in a batch. Only its first two axes are split.

        `data_shape` is the shape of the array, (B, ...).
        """
        return self._data_layout(data_shape, whole=self.num_processes == 1)

    def _data_layout(self, shape, whole):
        """Return the `TensorLayout` of an array of a batch.

        `whole` tells whether `shape` is the shape of the whole batch, or of one process's rows.
        """
        split = [None] * len(shape)
        if split and (not whole or shape[0] % self.mesh["data"] == 0):
            split[0] = "data"
        if len(split) in (2, 3) and self._divides(SEQUENCE, shape[1]):  # images have more axes
            split[1] = SEQUENCE
        return keras.distribution.TensorLayout(split, self.device_mesh)

    def get_token_layout(self, shape, roles=()):
        """Return the `keras.distribution.TensorLayout` of a tensor inside a model.

        Args:
            shape: (B, T, ...) for tokens, or (B, D) for one vector per row.
            roles: tuple of str, the roles of the last axes, such as `"heads"`, which are split like
                the axes of weights.

        Returns:
            A `TensorLayout`, or None if a size is unknown. The compiler then chooses a layout.
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
        """Return whether the mesh has `axis`, with a number of devices that divides `size`."""
        return axis in self.mesh and size % self.mesh[axis] == 0

    def report(self, model):
        """Return a `LayoutReport` of how each weight of a model is split, or why it is not.

        Args:
            model: a built `keras.Model` or layer.
        """
        makers = {
            id(variable): layer
            for layer in keras_internals.all_layers(model)
            for variable in keras_internals.own_variables(layer)
        }
        rows = []
        for weight in model.weights:
            planned = self._plan(makers.get(id(weight)), weight)
            layout = keras_internals.layout_of(weight)
            if layout is None or layout.device_mesh is not self.device_mesh:
                planned = WeightLayout(
                    weight.path,
                    planned.shape,
                    planned.axes,
                    (None,) * len(planned.shape),
                    "made before this layout was set. Set it first.",
                )
            rows.append(planned)
        return LayoutReport(self.mesh, tuple(rows))

    def _plan(self, layer, variable):
        """Return the `WeightLayout` of a variable. `layer` is the layer that owns it, or None."""
        shape = tuple(variable.shape)
        axes = None if layer is None else find_axes(layer, variable.name, shape)
        split, reasons = split_weight(axes, shape, self.mesh, self.fully_sharded)
        if axes is None and len(shape) > 1:
            reasons = ["no roles: weight_axes of its layer does not name it"]
        elif not any(split) and not reasons:
            reasons = ["no axis that this mesh splits"]
        return WeightLayout(variable.path, shape, axes, split, "; ".join(reasons))


def _read_mesh(mesh):
    """Return the argument `mesh` as {name of a mesh axis: number of devices}, after checks.

    "data" is always the first axis. If `mesh` has no such axis, it has 1 device.
    """
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
            f"RoleParallel only works on JAX, but Keras runs on "
            f"{keras.backend.backend()}. Set the environment variable KERAS_BACKEND=jax before "
            "you import Keras."
        )
