"""What CI, pre-commit and the templates of issues say goes together with what make runs."""

import re

import yaml

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


def test_templates_of_issues_are_forms():
    forms = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
    assert len(forms) == 3
    for form in forms:
        form = yaml.safe_load(form.read_text())
        assert form.keys() >= {"name", "description", "body"} or "blank_issues_enabled" in form
        for field in form.get("body", []):
            assert field["type"] in ("input", "textarea") and field["attributes"]["label"]


def test_the_map_of_the_tests_leads_to_files():
    links = re.findall(r"\]\(([^)]+)\)", (ROOT / "tests" / "README.md").read_text("utf-8"))
    assert len(links) > 20 and not [link for link in links if not (ROOT / "tests" / link).exists()]


def test_the_oldest_versions_are_those_that_setup_cfg_allows():
    text = (ROOT / "constraints-oldest.txt").read_text()
    pinned = dict(re.findall(r"^([\w.-]+)==(\S+)$", text.lower().replace("_", "-"), re.MULTILINE))
    text = (ROOT / "setup.cfg").read_text().lower().replace("_", "-")
    least = dict(re.findall(r"^    ([\w.-]+)(?:\[\w+\])?>=([\d.]+)$", text, re.MULTILINE))
    checked = least.keys() & pinned.keys()
    assert checked >= {"keras", "tensorflow", "numpy", "keras-hub", "ai-edge-litert"}
    for name in checked:
        assert f"{pinned[name]}.0".startswith(f"{least[name]}."), name
