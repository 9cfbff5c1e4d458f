"""Compiled functions: traced once for all lengths, and deleted with the model."""

import gc
import weakref

import numpy as np
import pytest

import keras_attention as ka
from tests.generation.toy import Toy

G = ka.generation
V = 7
PROMPTS = [[1, 2, 3], [4], [5, 6, 1, 2, 2]]


@pytest.fixture(scope="module")
def toy():
    return Toy(V)


@pytest.mark.tensorflow
def test_one_trace_serves_all_lengths():
    toy = Toy(V)
    for prompts, number in (([[1, 2]], 3), ([[1, 2, 3, 4, 5]], 7), ([[3]] * 4, 2)):
        G.generate(toy, prompts, number, "sample")
        G.generate(toy, prompts, number, G.Sample(seed=2), seed=1)
    assert [function.traces for function in toy._compiled.values()] == [1]


@pytest.mark.tensorflow
def test_one_trace_serves_all_prompts_that_differ_and_all_sources():
    toy = Toy(V, has_source=True)
    for size in (1, 2):
        prompts, sources = [[3], [4] * size, [5] * (size + 1)], [[3] * size, [4], [5, 6]]
        G.generate(toy, prompts, size, source=sources)
    assert [function.traces for function in toy._compiled.values()] == [1]


@pytest.mark.slow
def test_a_decoder_writes_with_the_weights_that_its_model_has_now():
    size = dict(num_layers=1, num_heads=2, hidden_dim=8, intermediate_dim=8)
    model = ka.models.causal_language_model(12, **size)
    decoder = G.Decoder(model)

    def write(with_decoder):
        return np.asarray(G.generate(with_decoder, [[1, 2]], 1, return_scores=True).scores)

    first = write(decoder)
    ka.training.enable_lora(model, 2)
    for variable in model.trainable_variables:
        variable.assign(np.random.default_rng(0).normal(size=variable.shape))
    adapted = write(decoder)
    assert np.abs(adapted - first).max() > 1e-3
    np.testing.assert_allclose(adapted, write(G.Decoder(model)), atol=1e-5)
    ka.training.merge_lora(model)
    np.testing.assert_allclose(write(decoder), adapted, atol=1e-4)


@pytest.mark.slow
def test_compiled_code_goes_with_the_model():
    toy = Toy(V)
    G.generate(toy, [[1]], 1)
    gone = weakref.ref(toy)
    del toy
    gc.collect()
    assert gone() is None


@pytest.mark.slow
def test_streams_and_callbacks_equal_generate(toy):
    sampler = G.Sample(top_k=4, seed=1)
    options = dict(end_token_id=3, no_repeat_ngram_size=2)
    expected = G.generate(toy, PROMPTS, 7, sampler, **options)
    streamed = np.stack(list(G.stream(toy, PROMPTS, 7, sampler, **options)), axis=1)
    steps = []
    result = G.generate(
        toy, PROMPTS, 7, sampler, callback=steps.append, return_scores=True, **options
    )
    assert np.array_equal(result.ids, expected)
    assert np.array_equal(np.stack(steps, axis=1), streamed)
    assert np.array_equal(streamed, expected[:, : streamed.shape[1]])
    assert not expected[:, streamed.shape[1] :].any()
