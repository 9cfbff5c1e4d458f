"""A warning if another project's `keras-attention` is installed."""

import subprocess
import sys

from tests.conftest import ROOT

IMPORT = "import sys, keras_attention; assert not {'keras', 'tensorflow'} & {*sys.modules}"


def import_beside(folder, names):
    """Import the package in a process with metadata `names` in `folder`, and return its output."""
    for name in names:
        (folder / name).mkdir()
    code = f"import sys; sys.path[:0] = [{str(ROOT)!r}, {str(folder)!r}, 'nowhere']; {IMPORT}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=folder)
    assert done.returncode == 0, done.stderr
    return done.stderr


def test_import_warns_about_the_other_project(tmp_path):
    output = import_beside(tmp_path, ["keras_attention-1.0.0.dist-info"])
    assert output.count("UserWarning") == 1
    assert f"{tmp_path} also has keras_attention-1.0.0.dist-info of another project" in output
    assert "pip uninstall keras-attention" in output


def test_import_does_not_warn_about_this_project(tmp_path):
    own = ["keras_attention_zoo-1.0.0.dist-info", "keras_attention-0.1.0.dist-info"]
    assert import_beside(tmp_path, [*own, "keras_attention", "keras-1.0.dist-info"]) == ""
