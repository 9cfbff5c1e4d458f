"""Counts the CPU time of every test, prints the most expensive ones, and limits the default tests.

A default test may take `LIMIT` CPU seconds in the process that runs it. A test above the limit is
an error, unless `EXPENSIVE` names it with a reason. Three things do not count towards the limit,
because the first test that happens to need them would pay for all: imports, fixtures shared by a
module or by the whole run, and the time of other processes. The total at the end counts everything.

Beside other programs on the same processor, the same test takes up to three times the CPU seconds
from one minute to the next. So a test above the limit runs up to twice more, and the quickest run
counts. Before and after each, a fixed piece of work runs, and the limit grows as much as this work
slows down.
"""

import builtins
import contextlib
import math
import os
import resource
import sys
import time

import pytest

LIMIT, REPEATS = 2.0, 2
PRINTED = 10
OTHER_RINGS = ("slow", "sweep")  # marks of tests without a limit
FIXED_WORK = 0.13  # CPU seconds of the fixed work on two idle cores of an Intel Xeon

# Default tests that may take longer, and why.
EXPENSIVE = {}


class Costs:
    """Measures the tests of one process, and collects the measurements of all processes.

    Args:
        limit: CPU seconds that a default test may take.
        expensive: dict, names of tests without a limit, and why.
    """

    def __init__(self, limit=LIMIT, expensive=EXPENSIVE):
        self.limit, self.expensive = limit, expensive
        self.shared = 0.0  # CPU seconds of imports and shared fixtures
        self.inside_shared = False
        self.started = (0.0, 0.0)
        self.set_up = 0.0  # CPU seconds of the present test before its call
        self.tests = {}  # CPU seconds by name
        self.processes = []  # (CPU seconds, megabytes at most) of each

    @contextlib.contextmanager
    def sharing(self):
        """Count what happens inside as shared."""
        if self.inside_shared:
            yield
            return
        self.inside_shared, start = True, time.process_time()
        try:
            yield
        finally:
            self.inside_shared = False
            self.shared += time.process_time() - start

    @contextlib.contextmanager
    def watching_imports(self):
        """Count imports as shared."""
        import_module = builtins.__import__

        def import_and_count(name, *args, **kwargs):
            if name in sys.modules:
                return import_module(name, *args, **kwargs)
            with self.sharing():
                return import_module(name, *args, **kwargs)

        builtins.__import__ = import_and_count
        try:
            yield
        finally:
            builtins.__import__ = import_module

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef, request):
        if fixturedef.scope == "function":
            return (yield)
        with self.sharing():
            return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item, nextitem):
        self.started = time.process_time(), self.shared
        with self.watching_imports():
            return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item):
        self.set_up = self.count_seconds()
        return (yield)

    def count_seconds(self):
        """Return the CPU seconds of the present test so far, without shared ones."""
        start, shared = self.started
        return time.process_time() - start - (self.shared - shared)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item, call):
        report = yield
        if call.when == "call":
            seconds = self.count_seconds()
            report.user_properties.append(("cpu_seconds", seconds))
            limited = not any(item.get_closest_marker(mark) for mark in OTHER_RINGS)
            if limited and report.passed and self.exceeds(item.nodeid, seconds):
                slowness = [measure_slowness()]
                for _ in range(REPEATS):
                    seconds = min(seconds, self.set_up + repeat(item))
                    slowness.append(measure_slowness())
                allowed = self.limit * max(slowness)
                if seconds > allowed:
                    report.outcome = "failed"
                    report.longrepr = explain(item.nodeid, seconds, self.limit, allowed)
        return report

    def exceeds(self, name, seconds):
        return seconds > self.limit and name.partition("[")[0] not in self.expensive

    def pytest_runtest_logreport(self, report):
        for key, seconds in report.user_properties:
            if key == "cpu_seconds":
                self.tests[report.nodeid] = seconds

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node, error):
        if process := getattr(node, "workeroutput", {}).get("costs"):
            self.processes.append(process)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session):
        workers = bool(self.processes)  # those of pytest-xdist have ended and count themselves
        process = measure_process(with_children=not workers)
        if output := getattr(session.config, "workeroutput", None):
            output["costs"] = process
        else:
            self.processes.append(process)

    def pytest_terminal_summary(self, terminalreporter):
        terminalreporter.section("CPU time")
        costs = sorted(self.tests.items(), key=lambda item: -item[1])
        for name, seconds in costs[:PRINTED]:
            terminalreporter.line(f"{seconds:6.2f} s  {name}")
        seconds, megabytes = zip(*self.processes, strict=True)
        terminalreporter.line(
            f"{sum(seconds):.0f} CPU seconds in all; the largest process took"
            f" {max(megabytes) / 1000:.1f} GB"
        )


def repeat(item):
    """Return the CPU seconds of another run of a test that has passed. Infinity if it cannot."""
    start = time.process_time()
    try:
        item.runtest()
    except (Exception, pytest.skip.Exception, pytest.fail.Exception):
        return math.inf  # such as a test that finds its own files
    return time.process_time() - start


def measure_slowness():
    """Return how many times as long as usual this machine needs now, at least 1.

    The work is building a graph of TensorFlow, on which most tests spend their time. The slowest of
    five repetitions counts.
    """
    import tensorflow as tf

    seconds = []
    for _ in range(5):
        start = time.process_time()
        with tf.Graph().as_default():
            x = tf.zeros((4, 4))
            for _ in range(150):
                x = tf.nn.relu(tf.matmul(x, x) + 1.0)
        seconds.append(time.process_time() - start)
    return max(1.0, max(seconds) / FIXED_WORK)


def measure_process(with_children):
    """Return (CPU seconds, peak memory in megabytes) of this process.

    `with_children` adds the CPU seconds of the processes that it started and that have ended.
    """
    own = resource.getrusage(resource.RUSAGE_SELF)
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    counted = (own, children) if with_children else (own,)
    seconds = sum(usage.ru_utime + usage.ru_stime for usage in counted)
    return seconds, own.ru_maxrss * 1024 / 1e6  # Linux counts in kilobytes


def explain(name, seconds, limit, allowed):
    return (
        f"{name} took {seconds:.1f} CPU seconds; a default test may take {limit:g}, and"
        f" {allowed:.1f} at the present speed of this machine. Make it smaller, or mark it slow"
        " (tests/README.md says which tests are)."
    )


def pytest_configure(config):
    # JAX compiles each operation, and PyTorch runs other tests: the limit is for TensorFlow.
    on_tensorflow = os.environ.get("KERAS_BACKEND", "tensorflow") == "tensorflow"
    config.pluginmanager.register(Costs(LIMIT if on_tensorflow else math.inf), "costs")
