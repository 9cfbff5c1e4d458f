"""A function of tensors through LiteRT and back."""

import numpy as np
import tensorflow as tf
from ai_edge_litert.interpreter import Interpreter, OpResolverType


def assert_converts(function, arrays, dynamic, variables=(), atol=1e-4):
    """`function(**arrays)`, a dict of tensors, is the same in LiteRT, with built-in ops alone.

    Converted twice: as static as `arrays` are, and with the axes below `dynamic` (batch, length)
    unknown; each is run with XNNPACK and without.
    """
    expected = function(**{name: tf.constant(array) for name, array in arrays.items()})
    for axes in (0, dynamic):
        specs = {
            name: tf.TensorSpec([None] * min(axes, a.ndim) + list(a.shape[axes:]), a.dtype, name)
            for name, a in arrays.items()
        }
        model = _convert(function, specs, variables)
        for resolver in (OpResolverType.AUTO, OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES):
            interpreter = Interpreter(model_content=model, experimental_op_resolver_type=resolver)
            outputs = interpreter.get_signature_runner()(**arrays)
            assert outputs.keys() == expected.keys()
            for name, output in outputs.items():
                np.testing.assert_allclose(
                    output,
                    expected[name],
                    atol=atol,
                    rtol=0,
                    err_msg=f"{name}, {axes} axes, {resolver}",
                )


def _convert(function, specs, variables):
    module = tf.Module()
    module.kept = list(variables)
    module.run = tf.function(lambda **inputs: function(**inputs), autograph=False)
    signature = module.run.get_concrete_function(**specs)
    converter = tf.lite.TFLiteConverter.from_concrete_functions([signature], module)
    converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS]
    return converter.convert()
