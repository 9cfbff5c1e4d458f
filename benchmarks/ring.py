"""Memory of attention whose sequence is split among eight devices, against one device's, on JAX.

    python benchmarks/ring.py 16384

Eight virtual devices of one CPU compute causal attention and its gradients by the kernel `ring`,
and one device the same by `ring`, by `chunked` and by what it takes by default. Memory is what the
compiler says of a device's program: its arguments, results, and all between. The numbers of both
rings are compared, and of some rows with the definition in float64; the others are not run.
"""

import os
import sys

os.environ["KERAS_BACKEND"] = "jax"
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ["XLA_FLAGS"] = (
    os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=8"
)

import jax
import keras
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


def compute_rows(tensors, rows):
    """Output and query gradients of some rows by the definition, float64 (rows, N, H) each."""
    query, key, value, upstream = (x[0].astype("float64") for x in tensors)
    output, gradient = [], []
    for i in rows:
        scores = np.einsum("nh,snh->ns", query[i], key[: i + 1]) / SIZE**0.5
        weights = np.exp(scores - scores.max(1, keepdims=True))
        weights /= weights.sum(1, keepdims=True)
        output.append(np.einsum("ns,snh->nh", weights, value[: i + 1]))
        above = np.einsum("nh,snh->ns", upstream[i], value[: i + 1])
        of_scores = weights * (above - (weights * above).sum(1, keepdims=True))
        gradient.append(np.einsum("ns,snh->nh", of_scores, key[: i + 1]) / SIZE**0.5)
    return np.stack(output), np.stack(gradient)


def main(length):
    one = SingleDeviceSharding(jax.devices()[0])
    alone = ka.distribution.RoleParallel(
        {"sequence": 1}, devices=keras.distribution.list_devices()[:1]
    )
    layout = ka.distribution.RoleParallel({"sequence": 8})
    programs = {}
    for name, each in (("eight devices", layout), ("ring alone", alone)):
        split = each.get_data_layout((1, length, HEADS)).backend_layout
        with each.scope():
            programs[name] = compile_program("ring", length, split), split
    programs["chunked"] = compile_program("chunked", length, one), one
    programs["default"] = compile_program(None, length, one), one
    ring = megabytes(programs["eight devices"][0])
    print(f"T={length}, causal, N{HEADS} H{SIZE}, both passes: {ring:.1f} MB on each of eight")
    for name, (program, _) in list(programs.items())[1:]:
        used = megabytes(program)
        print(f"one device, {name}: {used:.1f} MB, of which that is {ring / used:.4f}", flush=True)
    random = np.random.default_rng(0)
    tensors = [random.normal(size=(1, length, HEADS, SIZE)).astype("float32") for _ in range(4)]
    found, whole = (
        [np.asarray(x)[0] for x in program(*[jax.device_put(x, split) for x in tensors])]
        for program, split in (programs["eight devices"], programs["ring alone"])
    )
    rows = np.unique(random.integers(0, length, 64))
    exact = dict(zip(("output", "query"), compute_rows(tensors, rows), strict=True))
    for name, ours, theirs in zip(("output", "query", "key", "value"), found, whole, strict=True):
        print(f"{name}: differs from one device's by {difference(ours, theirs):.1e} of its scale")
        if name in exact:
            print(f"  64 rows from float64's by {difference(ours[rows], exact[name]):.1e}")


def difference(ours, theirs):
    return abs(ours - theirs).max() / max(1.0, abs(theirs).max())


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 16384)
