"""CI, workflows, pre-commit, the templates of issues and the version agree with each other."""

import re

import yaml

import keras_attention as ka
from tests.conftest import ROOT


def test_pre_commit_runs_the_linter_of_make_check():
    """Whoever moves constraints.txt moves `rev` in .pre-commit-config.yaml, too."""
    (repository,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    tested = re.search(r"^ruff==(\S+)", (ROOT / "constraints.txt").read_text(), re.MULTILINE)[1]
    assert repository["rev"] == f"v{tested}"
    assert [hook["id"] for hook in repository["hooks"]] == ["ruff-check", "ruff-format"]
    check = re.search(r"^check:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.MULTILINE)[1]
    assert "ruff check ." in check and "ruff format --check ." in check


def test_ci_runs_what_contributors_are_asked_for():
    ci = (ROOT / ".ci" / "run").read_text()
    template = (ROOT / ".github" / "pull_request_template.md").read_text()
    asked = re.findall(r"`(make [a-z-]+)`", template)
    assert asked and not [command for command in asked if f"\n{command}\n" not in ci]


def read_workflows():
    """Return the steps of all workflows, as {name of the file: [step]}."""
    folder = ROOT / ".github" / "workflows"
    workflows = {path.stem: yaml.safe_load(path.read_text()) for path in folder.glob("*.yml")}
    return {
        name: [step for job in workflow["jobs"].values() for step in job["steps"]]
        for name, workflow in workflows.items()
    }


def test_workflows_run_the_commands_of_ci():
    ci = (ROOT / ".ci" / "run").read_text()
    commands = set(re.findall(r"^make ([a-z-]+)", ci, re.MULTILINE))
    text = (ROOT / ".github" / "workflows" / "tests.yml").read_text()
    assert commands >= {"check", "test", "docs", "test-slow", "test-torch"}
    assert not [name for name in commands if not re.search(rf"\b{name}\b", text)]


def test_workflows_name_commands_and_scripts_that_exist():
    makefile = (ROOT / "Makefile").read_text()
    for name in ("tests", "nightly", "release"):
        text = (ROOT / ".github" / "workflows" / f"{name}.yml").read_text()
        targets = re.findall(r"run: make ([a-z-]+)", text)
        targets += re.findall(r"[a-z-]+", "".join(re.findall(r"command: \[(.*)\]", text)))
        scripts = re.findall(r"run: (\.ci/\S+)", text)
        assert targets or scripts
        assert not [x for x in targets if not re.search(rf"^{x}:", makefile, re.MULTILINE)]
        assert not [x for x in scripts if not (ROOT / x).stat().st_mode & 0o100]


def test_actions_of_workflows_are_pinned_to_a_commit():
    steps = [step for steps in read_workflows().values() for step in steps]
    actions = [step["uses"] for step in steps if "uses" in step]
    assert actions and all(re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", action) for action in actions)


def test_the_version_is_the_same_everywhere():
    changelog = (ROOT / "CHANGELOG.md").read_text()
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    version = ka.__version__
    date = re.search(rf"^## \[{re.escape(version)}\] - (\S+)$", changelog, re.MULTILINE)[1]
    assert (citation["version"], str(citation["date-released"])) == (version, date)


def test_the_changelog_stays_short():
    assert len((ROOT / "CHANGELOG.md").read_text().splitlines()) <= 80


def test_templates_of_issues_are_forms():
    forms = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
    assert len(forms) == 3
    for form in forms:
        form = yaml.safe_load(form.read_text())
        assert form.keys() >= {"name", "description", "body"} or "blank_issues_enabled" in form
        for field in form.get("body", []):
            assert field["type"] in ("input", "textarea") and field["attributes"]["label"]


def test_the_map_of_the_tests_leads_to_files():
    text = (ROOT / "tests" / "README.md").read_text("utf-8")
    paths = re.findall(r"\]\(([^)]+)\)", text) + re.findall(r"\| `(\w+/)`", text)
    assert len(paths) > 20 and not [path for path in paths if not (ROOT / "tests" / path).exists()]


def test_the_oldest_versions_are_those_that_setup_cfg_allows():
    text = (ROOT / "constraints-oldest.txt").read_text()
    pinned = dict(re.findall(r"^([\w.-]+)==(\S+)$", text.lower().replace("_", "-"), re.MULTILINE))
    text = (ROOT / "setup.cfg").read_text().lower().replace("_", "-")
    least = dict(re.findall(r"^    ([\w.-]+)(?:\[\w+\])?>=([\d.]+)$", text, re.MULTILINE))
    checked = least.keys() & pinned.keys()
    assert checked >= {"keras", "tensorflow", "numpy", "keras-hub", "ai-edge-litert"}
    for name in checked:
        assert f"{pinned[name]}.0".startswith(f"{least[name]}."), name
