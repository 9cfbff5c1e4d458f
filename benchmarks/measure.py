"""Compare the time of functions by running them in turn, and report the spread of the ratios."""

import json
import os
import statistics
import subprocess
import sys
import time

SECONDS = float(os.environ.get("BENCHMARK_SECONDS", 6))  # approximate time of each function


def compare(title, functions, base=None, seconds=SECONDS):
    """Time functions in turn (A B C A B C ...), and print a line for each.

    Args:
        title: str, printed above the table.
        functions: dict, name -> function without arguments that waits for its result.
        base: the name of the function that ratios refer to. None means the first.
        seconds: float, the approximate time for each function.

    Returns:
        dict, name -> median time divided by the median time of `base`.
    """
    base = base or next(iter(functions))
    times = {name: [] for name in functions}
    for run in functions.values():
        run()
        run()
    slowest = max(_timed(run)[0] for run in functions.values())
    for _ in range(max(5, min(100, round(seconds / slowest)))):
        for name, run in functions.items():
            times[name].append(_timed(run))
    print(f"\n{title}")
    print(f"  {'':42} {'ms':>9} {'CPU ms':>9} {'ratio':>6}  spread (quarter to three quarters)")
    reference = [wall for wall, _ in times[base]]
    ratios = {}
    for name, seconds in times.items():
        walls = [wall for wall, _ in seconds]
        pairs = sorted(a / b for a, b in zip(walls, reference, strict=True))
        low, high = (pairs[round(q * (len(pairs) - 1))] for q in (0.25, 0.75))
        wall, cpu = statistics.median(walls), statistics.median(cpu for _, cpu in seconds)
        ratios[name] = wall / statistics.median(reference)
        print(
            f"  {name:42} {wall * 1e3:9.1f} {cpu * 1e3:9.1f} {ratios[name]:6.2f}"
            f"  {low:.2f} to {high:.2f}"
        )
    return ratios


def _timed(run):
    cpu, wall = time.process_time(), time.perf_counter()
    run()
    return time.perf_counter() - wall, time.process_time() - cpu


def peak_memory(script, *arguments):
    """Run a script in a new process, and return what its `report_memory` prints, as a dict.

    If the script fails, return {"failed": reason}.
    """
    done = subprocess.run(
        [sys.executable, script, *map(str, arguments)],
        capture_output=True,
        text=True,
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
    )
    if done.returncode:
        reason = done.stderr.strip().splitlines()
        return {"failed": reason[-1] if reason else f"exit status {done.returncode}"}
    return json.loads(done.stdout.splitlines()[-1])


def report_memory(run):
    """Call `run`, and print as JSON how much this process grew (MB), and the seconds of a call."""
    before = _memory("VmRSS")
    run()
    start = time.perf_counter()
    run()
    seconds = time.perf_counter() - start
    print(json.dumps({"megabytes": _memory("VmHWM") - before, "seconds": seconds}))


def _memory(field):
    """Return the memory of this process in MB, from Linux: VmRSS is now, VmHWM is the peak."""
    with open("/proc/self/status") as file:
        line = next(line for line in file if line.startswith(field))
    return int(line.split()[1]) / 1024
