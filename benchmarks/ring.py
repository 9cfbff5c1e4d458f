"""Memory of attention whose sequence is split among eight devices, against one device's, on JAX.

    python benchmarks/ring.py 16384

Eight virtual devices of one CPU compute causal attention and its gradients by the kernel `ring`,
and one device the same by `chunked` and by what it takes by default. Memory is what the compiler
says of a device's program: its arguments, results, and all between. The numbers of the programs are
compared.
"""

import os
import sys

os.environ["KERAS_BACKEND"] = "jax"
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ["XLA_FLAGS"] = (
    os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=8"
)

import jax
import numpy as np
from jax.sharding import SingleDeviceSharding

import keras_attention as ka

HEADS, SIZE = 4, 32


def gradients(implementation):
    """Output and gradients of causal attention as a function of query, key, value, upstream."""

    def loss(query, key, value, upstream):
        output = ka.attention.attend(
            query,
            key,
            value,
            mask="causal",
            return_weights=False,
            implementation=implementation,
        )
        return (output * upstream).sum(), output

    def compute(*tensors):
        (_, output), found = jax.value_and_grad(loss, (0, 1, 2), has_aux=True)(*tensors)
        return (output, *found)

    return compute


def compile_program(implementation, length, sharding):
    shape = (1, length, HEADS, SIZE)
    given = [jax.ShapeDtypeStruct(shape, "float32", sharding=sharding) for _ in range(4)]
    return jax.jit(gradients(implementation), out_shardings=sharding).lower(*given).compile()


def megabytes(program):
    """What one device needs for a program."""
    found = program.memory_analysis()
    return (
        found.argument_size_in_bytes + found.output_size_in_bytes + found.temp_size_in_bytes
    ) / 2**20


def main(length):
    one = SingleDeviceSharding(jax.devices()[0])
    programs = {name: compile_program(name, length, one) for name in ("chunked", None)}
    layout = ka.distribution.RoleParallel({"data": 1, "sequence": 8})
    with layout.scope():
        split = layout.get_data_layout((1, length, HEADS)).backend_layout
        ring = compile_program("ring", length, split)
    for name, program in programs.items():
        share = megabytes(ring) / megabytes(program)
        print(
            f"T={length}: a device of eight, ring: {megabytes(ring):.1f} MB; one device, "
            f"{name or 'by default'}: {megabytes(program):.1f} MB; share {share:.3f}",
            flush=True,
        )
    random = np.random.default_rng(0)
    tensors = [random.normal(size=(1, length, HEADS, SIZE)).astype("float32") for _ in range(4)]
    found, expected = (
        [np.asarray(x) for x in program(*[jax.device_put(x, sharding) for x in tensors])]
        for program, sharding in ((ring, split), (programs["chunked"], one))
    )
    for name, a, b in zip(("output", "query", "key", "value"), found, expected, strict=True):
        print(f"{name}: differs by {abs(a - b).max() / max(1.0, abs(b).max()):.1e} of its scale")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 16384)
