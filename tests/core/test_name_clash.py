"""Another project's `keras-attention` is told in a sentence, and this project's own never is."""

import subprocess
import sys

from tests.conftest import ROOT

IMPORT = "import sys, keras_attention; assert not {'keras', 'tensorflow'} & {*sys.modules}"


def import_beside(folder, names):
    """What an import says in a new process that finds metadata called `names` in `folder`."""
    for name in names:
        (folder / name).mkdir()
    code = f"import sys; sys.path[:0] = [{str(ROOT)!r}, {str(folder)!r}, 'nowhere']; {IMPORT}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=folder)
    assert done.returncode == 0, done.stderr
    return done.stderr


def test_the_other_project_is_told(tmp_path):
    said = import_beside(tmp_path, ["keras_attention-1.0.0.dist-info"])
    assert said.count("UserWarning") == 1
    assert f"{tmp_path} also has keras_attention-1.0.0.dist-info of another project" in said
    assert "pip uninstall keras-attention" in said


def test_this_project_is_not(tmp_path):
    own = ["keras_attention_zoo-1.0.0.dist-info", "keras_attention-0.1.0.dist-info"]
    assert import_beside(tmp_path, [*own, "keras_attention", "keras-1.0.dist-info"]) == ""
