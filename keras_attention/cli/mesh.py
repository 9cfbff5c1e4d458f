"""Training on several devices (`--mesh`), and exports of models that JAX or PyTorch trained."""

import io
import math
import os
import pickle
import subprocess
import sys

EXAMPLE = "data=4,model=2"
AXES = ("data", "model")


def read_mesh(value):
    """Convert the value of `--mesh` to {name of a mesh axis: number of devices}.

    None is returned unchanged.
    """
    if value is None:
        return None
    sizes = {}
    for part in value.split(","):
        name, equals, size = (word.strip() for word in part.partition("="))
        if not equals or name not in AXES or name in sizes or not size.isdecimal() or size == "0":
            raise ValueError(
                f"--mesh {value}: {part!r} is not an axis of a mesh. Expected data=N, model=N or "
                f"both, each once, where N is a number of devices, such as --mesh {EXAMPLE}."
            )
        sizes[name] = int(size)
    return sizes


def make_layout(mesh, fully_sharded=False):
    """Make a `ka.distribution.RoleParallel`, which divides a model and its batches among devices.

    `mesh` is a dict from `read_mesh`. `fully_sharded` is the value of `--fully-sharded`.
    """
    import keras

    from keras_attention import distribution

    text = ",".join(f"{name}={size}" for name, size in mesh.items())
    if keras.backend.backend() != "jax":
        raise ValueError(
            f"--mesh {text} needs JAX, the only backend that divides weights among devices, and "
            f"Keras runs on {keras.backend.backend()}: export KERAS_BACKEND=jax"
        )
    devices, count = keras.distribution.list_devices(), math.prod(mesh.values())
    if len(devices) < count:
        fix = f"give --mesh data={len(devices)}"
        if devices[0].startswith("cpu"):
            fix = (
                f"export XLA_FLAGS=--xla_force_host_platform_device_count={count} divides a CPU "
                f"into {count} devices"
            )
        raise ValueError(
            f"--mesh {text} needs {count} devices, and the number of devices is {len(devices)} "
            f"({devices[0]}{'' if len(devices) == 1 else ', ...'}): {fix}."
        )
    return distribution.RoleParallel(mesh, fully_sharded=fully_sharded, devices=devices[:count])


def check_batch_size(batch_size, mesh):
    """Raise a ValueError if `batch_size` is not a multiple of the size of the axis `data`.

    `mesh` is a dict from `read_mesh`, or None for one device.
    """
    shares = (mesh or {}).get("data", 1)
    if batch_size is not None and batch_size % shares:
        lower = batch_size // shares * shares
        raise ValueError(
            f"--batch-size {batch_size} is not a multiple of data={shares} of --mesh, so batches "
            f"cannot be divided among the devices: give a multiple, such as {lower or shares}."
        )


def finish_with_tensorflow(**arguments):
    """Export and test a trained model in a new process with TensorFlow.

    `arguments` are the arguments of `ka.cli.train.train`. If the new process fails, it prints the
    reason, and this process exits, too.
    """
    # If native code is muted, `sys.stderr` is not the stderr that new processes inherit.
    errors = sys.stderr if isinstance(sys.stderr, io.TextIOWrapper) else None
    done = subprocess.run(
        [sys.executable, "-c", "from keras_attention.cli import finish_training as run; run()"],
        input=pickle.dumps(arguments),
        env={**os.environ, "KERAS_BACKEND": "tensorflow"},
        stderr=errors,
    )
    if done.returncode:
        sys.exit(done.returncode)
