"""One browser for all tests."""

import subprocess

import pytest

from tests.browser import session


@pytest.fixture(scope="session")
def browser():
    """Return a `session.Session`. Skip without Chromium, npm or its registry."""
    if missing := session.find_missing():
        pytest.skip(f"No browser to test with: {missing}.")
    try:
        session.install_packages()
    except subprocess.CalledProcessError as error:
        pytest.skip(f"LiteRT.js could not be fetched: {error.stderr.strip()[-300:]}")
    with session.open_browser() as opened:
        yield opened
