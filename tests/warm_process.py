"""New processes that have TensorFlow imported already, for the scripts of `keras_attention.export`.

Exports check themselves in a process with TensorFlow only, which takes seconds to import. Here one
process imports it and forks for every script. Each fork is as fresh as a new process.
"""

import json
import os
import subprocess
import sys
import tempfile

SERVER = """
import json, os, runpy, sys
sys.modules["keras"] = None  # TensorFlow imports it where it can; each script decides anew
import numpy, tensorflow
del sys.modules["keras"]
for line in sys.stdin:
    job = json.loads(line)
    child = os.fork()
    if not child:
        os.dup2(os.open(job["stderr"], os.O_WRONLY), 2)
        os.dup2(2, 1)
        status, sys.argv = 1, job["command"]
        try:
            runpy.run_path(sys.argv[0], run_name="__main__")
            status = 0
        except BaseException:
            sys.excepthook(*sys.exc_info())
        finally:
            sys.stderr.flush()
            os._exit(status)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


class WarmProcess:
    """Runs Python scripts as `subprocess.run` does, from a process that has imported TensorFlow."""

    def __init__(self):
        self.server = None

    def run(self, command, *, env, capture_output, text, errors=None, timeout=None):
        """Run `[sys.executable, "-P", script, *arguments]`. Return a `CompletedProcess`."""
        python, isolated, *command = command
        assert (python, isolated) == (sys.executable, "-P") and capture_output and text
        if self.server is None:
            self.server = subprocess.Popen(
                [sys.executable, "-P", "-c", SERVER],
                **dict(stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL),
                text=True,
                env=env,
            )
        with tempfile.NamedTemporaryFile("r", errors="replace") as stderr:
            job = {"command": command, "stderr": stderr.name}
            self.server.stdin.write(json.dumps(job) + "\n")
            self.server.stdin.flush()
            status = int(self.server.stdout.readline())
            return subprocess.CompletedProcess(command, status, "", stderr.read())

    def close(self):
        if self.server is not None:
            self.server.communicate()
            self.server = None


def can_fork():
    return hasattr(os, "fork") and sys.platform == "linux"
