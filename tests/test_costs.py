"""The count of CPU seconds, and the limit of the default tests."""

import re
import subprocess
import sys

import numpy as np
import pytest

from tests import costs
from tests.conftest import ROOT

TESTS = """
import time
import pytest

def burn(seconds):
    start = time.process_time()
    while time.process_time() < start + seconds:
        pass

@pytest.fixture(scope="module")
def shared():
    burn({seconds})

@pytest.fixture
def own():
    burn({seconds})

def test_quick(): pass
def test_sleeping(): time.sleep({seconds})
def test_waiting_for_a_shared_fixture(shared): pass
def test_importing(): import burns_when_imported
def test_expensive(): burn({seconds})
@pytest.mark.slow
def test_slow(): burn({seconds})
def test_burning(): burn({seconds})
@pytest.mark.parametrize("size", [1, 2])
def test_burning_in_a_fixture(own, size): pass
"""


def write_tests(folder, seconds):
    folder.mkdir(exist_ok=True)
    (folder / "conftest.py").write_text("import sys\nsys.dont_write_bytecode = True\n")
    (folder / "pytest.ini").write_text("[pytest]\nmarkers =\n    slow: takes long\n")
    (folder / "test_made_up.py").write_text(TESTS.format(seconds=seconds))
    (folder / "burns_when_imported.py").write_text(TESTS.format(seconds=seconds) + "burn(0.2)\n")


def test_only_default_tests_over_the_limit_fail(pytester, monkeypatch):
    write_tests(pytester.path, 0.2)
    monkeypatch.setattr(costs, "measure_slowness", lambda: 1.0)
    plugin = costs.Costs(0.1, {"test_made_up.py::test_expensive": "it is long by nature"})
    run = pytester.inline_run("-p", "no:cacheprovider", plugins=[plugin])
    passed, _, failed = run.listoutcomes()
    assert [report.nodeid.partition("::")[2] for report in failed] == [
        "test_burning",
        "test_burning_in_a_fixture[1]",
        "test_burning_in_a_fixture[2]",
    ]
    assert len(passed) == 6
    assert re.search(r"test_burning took 0\.\d CPU seconds; a default test may", failed[0].longrepr)
    assert plugin.tests["test_made_up.py::test_slow"] == pytest.approx(0.2, abs=0.1)


def test_the_limit_grows_on_a_slow_machine(pytester, monkeypatch):
    write_tests(pytester.path, 0.08)
    monkeypatch.setattr(costs, "measure_slowness", lambda: 3.0)
    plugin = costs.Costs(0.04, {})
    run = pytester.inline_run("-p", "no:cacheprovider", plugins=[plugin])
    assert run.listoutcomes()[2] == []


def test_the_quickest_run_counts(pytester, monkeypatch):
    monkeypatch.setattr(costs, "measure_slowness", lambda: 1.0)
    pytester.makepyfile(
        test_first="""
        import time
        runs = []

        def test_slow_once():
            runs.append(0)
            start = time.process_time()
            while len(runs) == 1 and time.process_time() < start + 0.2:
                pass
        """
    )
    run = pytester.inline_run("-p", "no:cacheprovider", plugins=[costs.Costs(0.1, {})])
    assert [len(reports) for reports in run.listoutcomes()] == [1, 0, 0]


def test_slowness_follows_the_time_of_fixed_work(monkeypatch):
    now = iter(np.cumsum([0, 1, 0, 1, 0, 3, 0, 1, 0, 1]) * costs.FIXED_WORK)
    with monkeypatch.context() as patches:
        patches.setattr(costs.time, "process_time", lambda: next(now))
        slowness = costs.measure_slowness()
    assert slowness == pytest.approx(3)


@pytest.mark.slow
@pytest.mark.parametrize("processes", [0, 2])
def test_a_run_with_a_test_of_three_cpu_seconds_fails(tmp_path, processes):
    write_tests(tmp_path / "burning", 3)
    with (tmp_path / "burning" / "conftest.py").open("a") as file:
        file.write("from tests import costs\ncosts.measure_slowness = lambda: 1.0\n")
    options = ["-p", "tests.costs", "-p", "no:cacheprovider", f"--numprocesses={processes}"]
    command = [sys.executable, "-m", "pytest", *options, "-k", "burning and not fixture"]
    run = subprocess.run(
        [*command, str(tmp_path / "burning")], cwd=ROOT, capture_output=True, text=True
    )
    assert run.returncode == 1 and "1 failed" in run.stdout
    assert re.search(r"3\.\d\d s  \S*test_burning\n", run.stdout)
    total = re.search(r"(\d+) CPU seconds in all; the largest process took \d+\.\d GB", run.stdout)
    assert 3 <= int(total[1]) < 20


def test_every_expensive_test_exists_and_has_a_reason():
    for name, reason in costs.EXPENSIVE.items():
        file, function = name.split("::")
        assert f"def {function}(" in (ROOT / file).read_text("utf-8"), f"remove {name}"
        assert len(reason.split()) > 2, f"say why {name} may take longer"
