"""Logits that are not finite stop a row and raise an error."""

from types import SimpleNamespace

import numpy as np
import pytest
from keras import ops

import keras_attention as ka
from keras_attention.core.special_ids import Padding
from keras_attention.generation import loop
from keras_attention.generation.config import make_config
from keras_attention.generation.inputs import prepare_inputs
from tests.generation.toy import Toy

G = ka.generation
V = 7


class Failing(Toy):
    """Its logits after a text of `length` tokens of the row `row` are `value`."""

    def __init__(self, length, row=0, value=np.nan):
        super().__init__(V)
        self.length, self.row, self.value = length, row, value

    def step(self, tokens, cache, index):
        logits, cache = super().step(tokens, cache, index)
        batch, new = ops.shape(tokens)
        positions = ops.reshape(ops.arange(new) + index + 1, (1, new, 1))
        rows = ops.reshape(ops.arange(batch) % 2, (batch, 1, 1))
        local = ops.logical_and(positions == self.length, rows == self.row)
        return ops.where(local, ops.cast(self.value, "float32"), logits), cache


@pytest.mark.usefixtures("eagerly")
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("sampler", ["greedy", "sample", G.Sample(top_k=3, top_p=0.9)], ids=str)
def test_the_error_names_the_step_and_the_row(sampler, value):
    with pytest.raises(ValueError, match="new token 3 of row 1 are NaN or infinite"):
        G.generate(Failing(5, 1, value), [[1, 2, 3], [4, 5, 6]], 6, sampler, seed=1)
    seen = []
    with pytest.raises(ValueError, match="new token 3 of row 1"):
        for ids in G.stream(Failing(5, 1, value), [[1, 2, 3], [4, 5, 6]], 6, sampler, seed=1):
            seen.append(ids)
    assert len(seen) == 2


@pytest.mark.usefixtures("eagerly")
def test_reports_describe_beams_and_drafts():
    prompt = [[1, 2, 3]]
    with pytest.raises(ValueError, match="new token 3 of row 0"):
        G.generate(Failing(5), prompt, 6, G.Beam(2))
    for model, draft in ((Failing(5), Toy(V)), (Toy(V), Failing(5))):
        with pytest.raises(ValueError, match="new token 3 of row 0"):
            G.generate(model, prompt, 6, draft_model=draft, num_draft_tokens=2)


@pytest.mark.usefixtures("eagerly")
def test_ended_rows_and_forbidden_ids_may_have_bad_logits():
    prompts, free = [[1, 2, 3]], Toy(V)
    end = int(G.generate(free, prompts, 1)[0, 0])
    assert G.generate(Failing(5), [*prompts, [4, 5, 6]], 6, end_token_id=end)[0, 0] == end
    forbidden = np.where(np.arange(V) == 0, np.nan, 1.0) * np.arange(V)
    assert G.generate(Failing(3, value=forbidden), prompts, 1)[0, 0] == V - 1
    hidden = np.where(np.arange(V) == 5, 1.0, -np.inf)
    assert G.generate(Failing(3, value=hidden), prompts, 1)[0, 0] == 5


def test_a_loop_of_an_exported_file_ends_the_row():
    rules = make_config("greedy", Padding())
    request = prepare_inputs(Failing(5, 1), [[1, 2, 3], [4, 5, 6]], 6, rules)
    result = loop.generate_tokens(request.decoder, rules, request.tensors)
    alone = G.generate(Toy(V), [[1, 2, 3], [4, 5, 6]], 6)
    assert np.array_equal(np.asarray(result["ids"])[0], alone[0])
    assert np.array_equal(np.asarray(result["ids"])[1], [*alone[1, :2], 0, 0, 0, 0])


@pytest.mark.slow
def test_the_weight_is_named():
    sizes = dict(num_layers=1, num_heads=1, hidden_dim=4, intermediate_dim=4)
    model = ka.models.causal_language_model(V, **sizes)
    weight = next(w for w in model.weights if "attention/query/kernel" in w.path)
    values = np.ones(weight.shape)
    values.flat[3] = np.nan
    weight.assign(values)
    with pytest.raises(ValueError, match="new token 1 of row 0 .*attention/query/kernel of"):
        G.generate(model, [[1, 2, 3]], 4)
    weight.assign(np.ones(weight.shape))
    with pytest.raises(ValueError, match="The weights are finite"):
        loop.raise_failures([SimpleNamespace(model=model)], np.array([1]))
