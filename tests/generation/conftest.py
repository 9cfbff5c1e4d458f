"""Tests with a decoder that is a table compile nothing, unless they ask whether it is compiled."""

import keras
import pytest

from keras_attention.generation.compiled import Compiled


@pytest.fixture
def eagerly(monkeypatch):
    """Functions run as they are. To trace one takes longer than all that these tests let it do."""
    if keras.backend.backend() != "torch":
        monkeypatch.setattr(
            Compiled, f"_{keras.backend.backend()}", lambda self, specs: self._trace
        )
        monkeypatch.setattr(Compiled, "output_specs", lambda self, tensors: {})
