"""Scopes: the current one, and the entries of a cache scope."""

from types import SimpleNamespace

import numpy as np
import pytest

from keras_attention.core import scope
from keras_attention.core.cache_spec import CacheSpec


def layer_of(path):
    return SimpleNamespace(path=path, name=path.split("/")[-1])


def test_the_innermost_scope_of_a_kind_is_current():
    assert scope.current(scope.Decoding) is None
    with scope.Decoding() as outer, scope.SegmentMemory(length=3) as memory:
        with scope.Decoding() as inner:
            assert scope.current(scope.Decoding) is inner
            assert scope.current(scope.CacheScope) is inner
        assert scope.current(scope.CacheScope) is memory
        assert scope.current(scope.Decoding) is outer
    assert scope.current(scope.CacheScope) is None


def test_cache_scope_keeps_layer_updates_for_the_next_call():
    layer = layer_of("model/block_0/attention")
    first = scope.CacheScope({"model_block_0_attention_key": 1, "other": 2})
    slot = first.slot(layer)
    assert "key" in slot and "value" not in slot and slot["key"] == 1
    slot.update(key=3)
    second = scope.CacheScope(first.cache)
    assert second.slot(layer)["key"] == 3 and second.cache["other"] == 2


def test_runs_of_a_layer_are_numbered_for_each_part():
    cache, layer = scope.CacheScope(), layer_of("shared")
    assert [cache.slot(layer).key("x") for _ in range(3)] == [
        "shared_x",
        "shared_1_x",
        "shared_2_x",
    ]
    assert cache.slot(layer, "other").key("y") == "shared_y"


def test_the_error_names_a_missing_entry():
    cache, layer = scope.CacheScope({"own_x": 0}), layer_of("own")
    with pytest.raises(RuntimeError, match="has no own_y, which own needs: it belongs to another"):
        cache.slot(layer)["y"]
    with pytest.raises(RuntimeError, match="own ran 2 times in one scope, but its cache is for 1"):
        cache.slot(layer)["x"]


def test_only_layers_in_paths_have_slots():
    listed, unlisted = layer_of("a"), layer_of("b")
    memory = scope.SegmentMemory(length=3, paths={id(listed): "block/a"})
    assert memory.slot(unlisted) is None and memory.slot(listed).key("hidden") == "block_a_hidden"


def test_a_traced_scope_collects_what_layers_declare():
    spec = CacheSpec(length=5)
    for _ in range(2):  # some backends trace twice
        with scope.Decoding(spec=spec) as decoding:
            slot = decoding.slot(layer_of("a"))
            assert slot.tracing
            slot.declare(state=scope.State((3,), "float32"), key=scope.Sequence((2, 4), "int8"))
            slot.declare_mask("a mask")
            scope.limit_length(9, "a table")
            scope.refuse_decoding("it looks ahead")
    assert set(spec.named()) == {"a_state", "a_key"}
    assert spec.named(scope.State) == {"a_state": scope.State((3,), "float32")}
    assert spec.masks == {"a": "a mask"} and spec.max_lengths == {"a table": 9}
    assert spec.refusals == ["it looks ahead"] and spec.length == 5


def test_nothing_is_declared_outside_of_a_trace():
    with scope.Decoding({}):
        scope.limit_length(9, "a table")
        scope.refuse_decoding("nobody asked")


def test_positions_count_from_the_index_and_from_the_start_of_a_row():
    assert scope.is_token(3) is None
    np.testing.assert_array_equal(scope.Decoding({}, 4).positions(3), [4, 5, 6])
    with scope.Decoding({"start": np.array([0, 2], "int32")}, 1) as decoding:
        np.testing.assert_array_equal(decoding.positions(3), [[1, 2, 3], [0, 0, 1]])
        np.testing.assert_array_equal(scope.is_token(3), [[1, 1, 1], [0, 1, 1]])
