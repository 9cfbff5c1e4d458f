"""A warning if another project that installs a package `keras_attention` is present.

`keras-attention` 1.0.0 (2019) on PyPI is a different project. This one is `keras-attention-zoo`. If
both are installed, `keras_attention/__init__.py` of the later one overwrites the other.
"""

import os
import sys
import warnings

OTHER = "keras_attention-"  # prefix of its metadata: keras_attention-1.0.0.dist-info
OURS = "keras_attention-0."  # the older name of this project


def warn_of_name_clash():
    """Warn if another project with a package `keras_attention` is installed.

    Only file names in the folders of `sys.path` are read.
    """
    for folder in sys.path:
        try:
            names = os.listdir(folder or ".")
        except OSError:  # a zip file, or not there
            continue
        for name in names:
            if name.startswith(OTHER) and not name.startswith(OURS) and name.endswith("-info"):
                warnings.warn(
                    f"{folder} also has {name} of another project, which writes into the same "
                    "folder keras_attention as keras-attention-zoo. Fix it with: "
                    "pip uninstall keras-attention && "
                    "pip install --force-reinstall --no-deps keras-attention-zoo",
                    stacklevel=3,
                )
                return
