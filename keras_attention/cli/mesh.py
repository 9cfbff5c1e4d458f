"""`--mesh`: `train` on several devices, and the end of a run that JAX or PyTorch trained."""

import os
import pickle
import subprocess
import sys

EXAMPLE = "data=4,model=2"
AXES = ("data", "model")


def read_mesh(value):
    """Return {name of a mesh axis: how many devices} of `--mesh`, or None.

    ```python
    from keras_attention.cli.mesh import read_mesh

    assert read_mesh("data=4,model=2") == {"data": 4, "model": 2}
    ```
    """
    if value is None:
        return None
    sizes = {}
    for part in value.split(","):
        name, equals, size = (word.strip() for word in part.partition("="))
        if not equals or name not in AXES or name in sizes or not size.isdecimal() or size == "0":
            raise ValueError(
                f"--mesh {value}: {part!r} is no axis of a mesh. Expected data=N, model=N or both, "
                f"each once, with a number of devices, such as --mesh {EXAMPLE}."
            )
        sizes[name] = int(size)
    return sizes


def make_layout(mesh, fully_sharded=False):
    """Make the `ka.distribution.RoleParallel` of `--mesh`."""
    import keras

    from keras_attention import distribution

    given = ",".join(f"{name}={size}" for name, size in mesh.items())
    if keras.backend.backend() != "jax":
        raise ValueError(
            f"--mesh {given} wants JAX, which alone lays weights out on devices, and Keras runs on "
            f"{keras.backend.backend()}: export KERAS_BACKEND=jax"
        )
    devices, wanted = keras.distribution.list_devices(), 1
    for size in mesh.values():
        wanted *= size
    if len(devices) < wanted:
        kind = devices[0].partition(":")[0]
        mend = (
            f"export XLA_FLAGS=--xla_force_host_platform_device_count={wanted} makes so many of a "
            "CPU"
            if kind == "cpu"
            else f"give --mesh data={len(devices)}"
        )
        raise ValueError(
            f"--mesh {given} is of {wanted} devices, and there "
            f"{'is one' if len(devices) == 1 else f'are {len(devices)}'} ({devices[0]}"
            f"{'' if len(devices) == 1 else ', ...'}): {mend}."
        )
    return distribution.RoleParallel(mesh, fully_sharded=fully_sharded, devices=devices[:wanted])


def check_batch_size(batch_size, mesh):
    """Refuses a `--batch-size` that the devices of the mesh cannot share."""
    shares = (mesh or {}).get("data", 1)
    if batch_size is not None and batch_size % shares:
        lower = batch_size // shares * shares
        raise ValueError(
            f"--batch-size {batch_size} is no multiple of data={shares} of --mesh, so that each "
            f"device would compute whole batches: expected one, such as {lower or shares}."
        )


def finish_with_tensorflow(**arguments):
    """Exports and tests what was trained, in a process whose Keras runs on TensorFlow.

    Args:
        **arguments: those of `ka.cli.train.train`, from which the run was trained.

    Raises:
        SystemExit: it failed, and has said why.
    """
    # Where C++ is muted, Python's standard error is no longer that of new processes.
    errors = sys.stderr if hasattr(sys.stderr, "buffer") else None
    done = subprocess.run(
        [sys.executable, "-c", "from keras_attention.cli import finish_training as run; run()"],
        input=pickle.dumps(arguments),
        env={**os.environ, "KERAS_BACKEND": "tensorflow"},
        stderr=errors,
    )
    if done.returncode:
        sys.exit(done.returncode)
