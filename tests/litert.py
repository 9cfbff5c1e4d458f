"""A function of tensors through LiteRT and back."""

import numpy as np
import tensorflow as tf
from ai_edge_litert.interpreter import Interpreter, OpResolverType


def assert_converts(function, arrays, dynamic, variables=(), atol=1e-4):
    """Check that LiteRT computes `function(**arrays)`, a dict, with built-in ops only.

    It is converted twice: with the shapes of `arrays`, and with the axes below `dynamic` (batch,
    length) unknown. Each file runs with XNNPACK and without.
    """
    expected = function(**{name: tf.constant(array) for name, array in arrays.items()})
    for axes in (0, dynamic):
        specs = {name: spec(name, array, axes) for name, array in arrays.items()}
        for run in runners(convert(function, specs, variables)):
            outputs = run(**arrays)
            assert outputs.keys() == expected.keys()
            for name, output in outputs.items():
                message = f"{name}, {axes} axes unknown"
                np.testing.assert_allclose(
                    output, expected[name], atol=atol, rtol=0, err_msg=message
                )


def spec(name, array, dynamic=0):
    unknown = min(dynamic, array.ndim)
    return tf.TensorSpec([None] * unknown + list(array.shape[unknown:]), array.dtype, name)


def convert(function, specs, variables=()):
    """`function` as a LiteRT file of built-in ops, in memory."""
    module = tf.Module()
    module.kept = list(variables)
    module.run = tf.function(lambda **inputs: function(**inputs), autograph=False)
    signature = module.run.get_concrete_function(**specs)
    converter = tf.lite.TFLiteConverter.from_concrete_functions([signature], module)
    converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS]
    return converter.convert()


def runners(model):
    """Return the signature of `model` in the stock runtime, with XNNPACK and without."""
    for resolver in (OpResolverType.AUTO, OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES):
        interpreter = Interpreter(model_content=model, experimental_op_resolver_type=resolver)
        yield interpreter.get_signature_runner()


def operators(model):
    """Return the names of the ops of `model`, in order."""
    resolver = OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    interpreter = Interpreter(model_content=model, experimental_op_resolver_type=resolver)
    return [op["op_name"] for op in interpreter._get_ops_details()]
