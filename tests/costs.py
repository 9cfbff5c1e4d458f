"""Counts the CPU time of every test, prints the most expensive ones, and limits the default tests.

A default test may take `LIMIT` CPU seconds in the process that runs it. A test above the limit is
an error, unless `EXPENSIVE` names it with a reason. Three things do not count towards the limit,
because the first test that happens to need them would pay for all: imports, fixtures shared by a
module or by the whole run, and the time of other processes. The total at the end counts everything.
"""

import builtins
import contextlib
import math
import os
import resource
import sys
import time

import pytest

LIMIT = 2.0
PRINTED = 10
OTHER_RINGS = ("slow", "sweep")  # marks of tests without a limit

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
    def pytest_runtest_makereport(self, item, call):
        report = yield
        if call.when == "call":
            start, shared = self.started
            seconds = time.process_time() - start - (self.shared - shared)
            report.user_properties.append(("cpu_seconds", seconds))
            limited = not any(item.get_closest_marker(mark) for mark in OTHER_RINGS)
            if limited and report.passed and self.exceeds(item.nodeid, seconds):
                report.outcome = "failed"
                report.longrepr = explain(item.nodeid, seconds, self.limit)
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


def measure_process(with_children):
    """Return (CPU seconds, peak memory in megabytes) of this process.

    `with_children` adds the CPU seconds of the processes that it started and that have ended.
    """
    own = resource.getrusage(resource.RUSAGE_SELF)
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    counted = (own, children) if with_children else (own,)
    seconds = sum(usage.ru_utime + usage.ru_stime for usage in counted)
    return seconds, own.ru_maxrss * 1024 / 1e6  # Linux counts in kilobytes


def explain(name, seconds, limit):
    return (
        f"{name} took {seconds:.1f} CPU seconds; a default test may take {limit:g}. Make it"
        " smaller, or mark it slow (tests/README.md says which tests are)."
    )


def pytest_configure(config):
    # JAX compiles each operation, and PyTorch runs other tests: the limit is for TensorFlow.
    on_tensorflow = os.environ.get("KERAS_BACKEND", "tensorflow") == "tensorflow"
    config.pluginmanager.register(Costs(LIMIT if on_tensorflow else math.inf), "costs")
