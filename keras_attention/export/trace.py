"""From endpoints to a SavedModel folder: one module, one copy of the variables."""

from keras_attention import scope
from keras_attention.export import backend


def save(model, endpoints, folder, mask_constant):
    """Traces `endpoints` of `model` and writes them as a SavedModel to `folder`.

    The module owns the raw variables (`v.value`). To let it hold the Keras model instead writes
    every variable twice, and to hold nothing lets the LiteRT converter drop them without a word.
    """
    tf = backend.tensorflow()
    module = tf.Module()
    with scope.Export(mask_constant):
        functions = {endpoint.name: _trace(endpoint) for endpoint in endpoints}
    owned = {id(weight.value): weight.value for weight in model.weights}
    for function in functions.values():  # state that is no weight, such as a seed in use
        owned |= {id(v): v for v in function.graph.variables}
    module.owned = list(owned.values())
    with backend.quiet():
        tf.saved_model.save(module, str(folder), signatures=functions)
    return sum(int(v.shape.num_elements()) for v in module.owned)


def _trace(endpoint):
    tf = backend.tensorflow()
    names = [tensor.name for tensor in endpoint.inputs]
    specs = [tf.TensorSpec(t.shape, t.dtype, name=t.name) for t in endpoint.inputs]

    @tf.function(input_signature=specs, autograph=False)
    def serve(*tensors):
        outputs = endpoint.call(dict(zip(names, tensors, strict=True)))
        # An output that is an input, or that is returned twice, needs a node of its own.
        return {name: tf.identity(value, name=name) for name, value in outputs.items()}

    return serve.get_concrete_function()
