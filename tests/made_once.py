"""What tests of several files look at, made once for all processes of a run."""

import fcntl
import os


def make_once(tmp_path_factory, name, make):
    """Return the folder `name`. The first test that needs it fills it with `make(folder)`."""
    root = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        root = root.parent  # the folder of the run, around those of its processes
    root = root / "made_once"
    root.mkdir(exist_ok=True)
    folder, whole = root / name, root / f"{name}.whole"
    with open(root / f"{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not whole.exists():
            folder.mkdir(exist_ok=True)
            make(folder)
            whole.touch()
    return folder
