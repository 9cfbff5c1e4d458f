"""A warning if another project with a folder `keras_attention` is installed.

`keras-attention` 1.0.0 of 2019 is not this project, whose distribution is `keras-attention-zoo`. If
both are installed, the later one overwrites `keras_attention/__init__.py` of the other.
"""

import os
import sys
import warnings

OTHER = "keras_attention-"  # how its metadata is called: keras_attention-1.0.0.dist-info
OURS = "keras_attention-0."  # this project's own until it was renamed


def warn_of_name_clash():
    """Warn of the first such distribution on `sys.path`. Only names of files are read."""
    for folder in sys.path:
        try:
            names = os.listdir(folder or ".")
        except OSError:  # a zip file, or not there
            continue
        for name in names:
            if name.startswith(OTHER) and not name.startswith(OURS) and name.endswith("-info"):
                warnings.warn(
                    f"{folder} also has {name} of another project, which writes into the same "
                    "folder keras_attention as keras-attention-zoo does. Mend it with: "
                    "pip uninstall keras-attention && "
                    "pip install --force-reinstall --no-deps keras-attention-zoo",
                    stacklevel=3,
                )
                return
