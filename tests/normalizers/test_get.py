"""Names, configs and errors of `normalizers.get`."""

import json

import keras
import pytest

from keras_attention import normalizers
from tests.normalizers.definition import EXAMPLES

PARTS = [part for part, _ in EXAMPLES.values()]


@pytest.mark.parametrize("part", PARTS, ids=list(EXAMPLES))
def test_get_by_object_and_config(part):
    assert normalizers.get(part) is part
    written = keras.saving.serialize_keras_object(part)
    again = normalizers.get(json.loads(json.dumps(written)))
    assert again == part and hash(again) == hash(part)
    plain = {"class_name": type(part).__name__, "config": part.get_config()}
    assert normalizers.get(plain) == part


@pytest.mark.parametrize("name", sorted(set(normalizers.NAMES) - {"top_k", "activation"}))
def test_get_by_name(name):
    cls = normalizers.NAMES[name]
    assert normalizers.get(name) == normalizers.get(cls.__name__) == cls()


@pytest.mark.parametrize("name, argument", [("top_k", "k"), ("activation", "fn")])
def test_a_name_of_a_normalizer_with_arguments_is_an_error(name, argument):
    with pytest.raises(ValueError, match=f"needs {argument}.*{argument}=..."):
        normalizers.get(name)


def test_get_none():
    assert normalizers.get(None) is None


def test_unknown_names_and_keys_are_errors():
    with pytest.raises(ValueError, match="'softmin'.*softmax, sparsemax"):
        normalizers.get("softmin")
    with pytest.raises(ValueError, match="class_name='Softmin'.*softmax, sparsemax"):
        normalizers.get({"class_name": "Softmin", "config": {}})
    with pytest.raises(ValueError, match="Softmax has no argument temp.*temperature, soft_cap"):
        normalizers.get({"class_name": "Softmax", "config": {"temp": 2.0}})
    with pytest.raises(ValueError, match="normalizer=1.5"):
        normalizers.get(1.5)
