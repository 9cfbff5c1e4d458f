"""What is inside a SavedModel folder, read without loading it."""

import collections
import math
import pathlib

from keras_attention.export import backend
from keras_attention.export.report import Signature, Tensor


def read(folder):
    """The signatures of a SavedModel, and its ops by kind."""
    backend.tensorflow()
    from tensorflow.core.protobuf import saved_model_pb2

    path = pathlib.Path(folder) / "saved_model.pb"
    message = saved_model_pb2.SavedModel()
    try:
        message.ParseFromString(path.read_bytes())
        graph = message.meta_graphs[0]
    except Exception as error:  # protobuf's DecodeError has moved between its versions
        raise ValueError(f"{path} is damaged: it cannot be parsed.") from error
    signatures = tuple(
        Signature(name, _tensors(entry.inputs), _tensors(entry.outputs))
        for name, entry in graph.signature_def.items()
        if not name.startswith("__")  # TensorFlow's own, such as __saved_model_init_op
    )
    return signatures, _ops(graph.graph_def.library.function)


def values(folder):
    """How many numbers the checkpoint of a SavedModel holds."""
    tf = backend.tensorflow()
    shapes = tf.train.load_checkpoint(f"{folder}/variables/variables").get_variable_to_shape_map()
    return sum(math.prod(shape) for shape in shapes.values())


def _tensors(entries):
    tf = backend.tensorflow()
    return tuple(
        Tensor(name, tuple(tf.TensorShape(entry.tensor_shape)), tf.as_dtype(entry.dtype).name)
        for name, entry in sorted(entries.items())
    )


def _ops(functions):
    saving = ("__inference__traced_save", "__inference__traced_restore")
    return dict(
        collections.Counter(
            node.op
            for function in functions
            if not function.signature.name.startswith(saving)
            for node in function.node_def
        )
    )
