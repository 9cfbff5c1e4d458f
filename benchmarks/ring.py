"""Memory of attention with the sequence split over eight devices, compared with one device, on JAX.

    python benchmarks/ring.py 16384

Eight virtual devices of one CPU compute causal attention and its gradients with the kernel `ring`.
One device does the same with the kernels `ring`, `chunked` and the default. The compiler reports
the memory: arguments, results and intermediate results of the program of one device. The results of
`ring` on eight devices and on one are compared, and some rows are compared with the definition in
float64. The programs of the other kernels are only compiled.
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
    """Return a function of query, key, value and upstream gradient.

    It computes causal attention, and the gradients of query, key and value.
    """

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
        (_, output), slopes = jax.value_and_grad(loss, (0, 1, 2), has_aux=True)(*tensors)
        return (output, *slopes)

    return compute


def compile_program(implementation, length, sharding):
    shape = (1, length, HEADS, SIZE)
    shapes = [jax.ShapeDtypeStruct(shape, "float32", sharding=sharding) for _ in range(4)]
    return jax.jit(gradients(implementation), out_shardings=sharding).lower(*shapes).compile()


def megabytes(program):
    """Return the memory in MB that a compiled program needs on one device."""
    memory = program.memory_analysis()
    sizes = memory.argument_size_in_bytes, memory.output_size_in_bytes, memory.temp_size_in_bytes
    return sum(sizes) / 2**20


def compute_rows(tensors, rows):
    """Compute the output and the gradient of some queries by definition, float64 (rows, N, H)."""
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
    split_results, whole = (
        [np.asarray(x)[0] for x in program(*[jax.device_put(x, split) for x in tensors])]
        for program, split in (programs["eight devices"], programs["ring alone"])
    )
    rows = np.unique(random.integers(0, length, 64))
    exact = dict(zip(("output", "query"), compute_rows(tensors, rows), strict=True))
    for name, ours, theirs in zip(
        ("output", "query", "key", "value"), split_results, whole, strict=True
    ):
        print(f"{name}: differs from one device's by {difference(ours, theirs):.1e} of its scale")
        if name in exact:
            print(f"  64 rows from float64's by {difference(ours[rows], exact[name]):.1e}")


def difference(ours, theirs):
    return abs(ours - theirs).max() / max(1.0, abs(theirs).max())


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 16384)
