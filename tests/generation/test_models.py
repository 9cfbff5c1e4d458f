"""`generate` with real models equals reading the whole text again."""

import keras
import numpy as np
import pytest

import keras_attention as ka
from tests.grids import sampled
from tests.stacks import make_writer

G = ka.generation
V = 23
PROMPTS = [[1, 2, 3], [4], [5, 6, 7, 8, 9]]
SIZES = dict(num_layers=1, num_heads=2, hidden_dim=16, intermediate_dim=32, dropout=0.0)


def lively(model):
    """`model` with larger weights, so that its texts are not all alike."""
    random = np.random.default_rng(0)
    for weight in model.weights:
        if len(weight.shape) > 1:
            weight.assign(random.normal(size=weight.shape, scale=0.5).astype("float32"))
    return model


@pytest.fixture(scope="module")
def writer():
    return lively(ka.models.causal_language_model(V, position="rotary", **SIZES))


@pytest.fixture(scope="module")
def translator():
    return lively(ka.models.seq2seq_transformer(V, **SIZES))


def logits_of(model, text, source=None):
    """After each token of one row."""
    text = np.array([text])
    inputs = text if source is None else {"source_ids": np.array([source]), "target_ids": text}
    return keras.ops.convert_to_numpy(model(inputs))[0]


def anew(model, prompt, number, source=None):
    """Greedy decoding of one row that reads the whole text for every token."""
    text = list(prompt)
    for _ in range(number):
        logits = logits_of(model, text, source)[-1]
        text.append(1 + int(logits[1:].argmax()))
    return text[len(prompt) :]


@pytest.mark.slow
def test_a_language_model_generates_as_from_the_whole_text(writer):
    result = G.generate(writer, PROMPTS, 5)
    assert result.tolist() == [anew(writer, prompt, 5) for prompt in PROMPTS]
    assert len(set(result.ravel().tolist())) > 3


@pytest.mark.slow
@pytest.mark.parametrize(
    "parts",
    sampled(
        [
            dict(position=ka.positions.Learned(12)),
            dict(position="transformer_xl", num_key_value_heads=1),
            dict(position="rotary", mask=ka.masks.Window(3)),
            dict(position="alibi"),
            dict(position="sinusoidal"),
        ],
        2,
    ),
    ids=str,
)
def test_all_parts_generate_as_from_the_whole_text(parts):
    model = lively(make_writer(V, **parts, **SIZES))
    expected = [anew(model, prompt, 7) for prompt in PROMPTS]
    assert G.generate(model, PROMPTS, 7).tolist() == expected
    beam = G.Beam(3, num_return_sequences=2)
    together = G.generate(model, PROMPTS, 5, beam, end_token_id=3)
    alone = [G.generate(model, [prompt], 5, beam, end_token_id=3) for prompt in PROMPTS]
    assert np.array_equal(together, np.concatenate(alone))


@pytest.mark.slow
def test_a_recurrent_model_generates_as_from_the_whole_text():
    model = lively(ka.models.seq2seq_recurrent(V, V, hidden_dim=8))
    sources = [[3, 4, 5], [7], [8, 9]]
    result = G.generate(model, PROMPTS, 5, source=sources)
    rows = zip(PROMPTS, sources, strict=True)
    assert result.tolist() == [anew(model, prompt, 5, source) for prompt, source in rows]
    with pytest.raises(ValueError, match="is a state or a window"):
        G.generate(model, sources, 3, start_token_id=1, draft_model=model)


@pytest.mark.slow
def test_an_encoder_decoder_generates_as_from_the_whole_text(translator):
    sources = [[3, 4, 5], [7]]
    result = G.generate(translator, sources, 5, start_token_id=1)
    assert result.tolist() == [anew(translator, [1], 5, source) for source in sources]


def check_totals(model, sources, result):
    """Compare the totals of beams with the log-probabilities of whole texts."""
    for source, rows, totals in zip(sources, result.ids, result.totals, strict=True):
        for row, total in zip(rows.tolist(), totals, strict=True):
            text = [token for token in row if token]
            logits = logits_of(model, [1, *text[:-1]], source).astype("float64")
            log_p = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
            np.testing.assert_allclose(log_p[range(len(text)), text].sum(), total, atol=1e-4)


@pytest.mark.slow
def test_beam_totals_equal_the_model(translator):
    sources = [[3, 4, 5], [7]]
    beam = G.Beam(3, num_return_sequences=2)
    result = G.generate(
        translator,
        sources,
        4,
        beam,
        start_token_id=1,
        end_token_id=2,
        return_scores=True,
        return_attention=True,
    )
    check_totals(translator, sources, result)
    weights = result.attention["decoder_block_0/cross_attention"]
    assert weights.shape == (2, 2, 2, 4, 3)
    assert not weights[1, ..., 1:].any()  # of the source's padding
    text = np.cumsum(result.ids == 2, -1) - (result.ids == 2) == 0  # places up to END
    np.testing.assert_allclose(weights.sum(-1), np.stack([text, text], 2), atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("settings", [dict(coverage=True), dict(attention="luong")], ids=str)
def test_beams_of_recurrent_models_keep_their_states(settings):
    model = lively(ka.models.seq2seq_recurrent(V, V, hidden_dim=8, **settings))
    for weight in model.weights:
        if weight.name == "coverage_kernel":
            weight.assign(3 * np.random.default_rng(1).normal(size=weight.shape))
    sources, beam = [[3, 4, 5, 6, 8, 9], [7, 3]], G.Beam(3, num_return_sequences=3)
    result = G.generate(
        model, sources, 8, beam, start_token_id=1, end_token_id=2, return_scores=True
    )
    check_totals(model, sources, result)


@pytest.mark.slow
def test_recurrent_prompts_of_unequal_length_with_another_padding():
    """Their padding is an id like others to the model: only where a row begins tells."""
    model, sources = lively(ka.models.seq2seq_recurrent(V, V, hidden_dim=8)), [[3, 4], [7, 9]]
    prompts = [[1, 2, 3, 4], [5]]
    result = G.generate(model, prompts, 4, source=sources, padding_id=20)
    for row, prompt, source in zip(result, prompts, sources, strict=True):
        alone = G.generate(model, [prompt], 4, source=[source], padding_id=20)
        assert row.tolist() == alone[0].tolist()


@pytest.mark.slow
def test_an_encoder_may_return_two_vectors():
    source = keras.Input((2, 8), name="frames")
    encoder = keras.Model(source, keras.layers.Dense(16)(source), name="encoder")
    ids, encoded = keras.Input((None,), dtype="int32", name="ids"), keras.Input((2, 16))
    x = ka.blocks.TokenEmbedding(V, 16)(ids)
    x = ka.blocks.DecoderBlock(
        attention=ka.attention.MultiHeadAttention(2, 8, mask="causal"),
        cross_attention=ka.attention.MultiHeadAttention(2, 8),
        feed_forward=ka.blocks.FeedForward(32),
    )(x, encoded)
    decoder = keras.Model([ids, encoded], keras.layers.Dense(V)(x), name="decoder")
    model = lively(keras.Model([source, ids], decoder([ids, encoder(source)])))
    frames, text = np.random.default_rng(0).normal(size=(1, 2, 8)).astype("float32"), [1]
    for token in G.generate(model, frames, 4, start_token_id=1)[0]:
        logits = np.asarray(model([frames, np.array([text])]))[0, -1]
        assert token == 1 + logits[1:].argmax()
        text.append(int(token))


@pytest.mark.slow
def test_attention_up_to_the_end(writer):
    end = int(G.generate(writer, PROMPTS, 3)[0, 1])
    result = G.generate(writer, PROMPTS, 4, end_token_id=end, return_attention=True)
    text = np.cumsum(result.ids == end, -1) - (result.ids == end) == 0
    assert not text.all()
    (weights,) = result.attention.values()
    np.testing.assert_allclose(weights.sum(-1), np.stack([text, text], 1), atol=1e-5)
    with pytest.raises(ValueError, match="memory_length=2 keeps only its end"):
        G.generate(writer, PROMPTS, 3, memory_length=2, return_attention=True)


def test_attention_equals_that_of_the_model(writer):
    result = G.generate(writer, PROMPTS, 4, return_attention=True)
    (path,) = result.attention
    for prompt, ids, weights in zip(PROMPTS, result.ids, result.attention[path], strict=True):
        with ka.visualization.record_attention(writer) as maps:
            writer(np.array([[*prompt, *ids[:-1]]]))
        expected = keras.ops.convert_to_numpy(maps[path])[0, :, -4:]
        empty = weights.shape[-1] - expected.shape[-1]
        np.testing.assert_allclose(weights[..., empty:], expected, atol=1e-5)
        assert not weights[..., :empty].any()


def test_recording_includes_the_new_tokens(writer):
    expected = G.generate(writer, PROMPTS, 4, return_attention=True)
    with ka.visualization.record_attention(writer) as maps:
        assert np.array_equal(G.generate(writer, PROMPTS, 4), expected.ids)
    assert list(maps) == list(expected.attention)
    for path, weights in expected.attention.items():
        assert np.array_equal(maps[path], weights)
    with ka.visualization.record_attention(writer):
        with pytest.raises(ValueError, match="use generate\\(..., callback="):
            G.stream(writer, PROMPTS, 4)
        with pytest.raises(
            ValueError, match="record_attention need the whole text, but memory_length=2"
        ):
            G.generate(writer, PROMPTS, 3, memory_length=2)
    tokens = G.stream(writer, PROMPTS, 4)
    with ka.visualization.record_attention(writer), pytest.raises(ValueError, match="callback="):
        next(tokens)


@pytest.mark.slow
def test_recording_includes_the_encoder(translator):
    sources, beam = [[3, 4, 5], [7]], G.Beam(3, num_return_sequences=2)
    inputs = {"source_ids": np.array([[3, 4, 5], [7, 0, 0]]), "target_ids": np.ones((2, 4))}
    with ka.visualization.record_attention(translator) as called:
        translator(inputs)
    with ka.visualization.record_attention(translator) as maps:
        G.generate(translator, sources, 4, beam, start_token_id=1)
    assert set(maps) == set(called)
    encoder, _, cross = sorted(maps, key=lambda path: ("decoder" in path, "cross" in path))
    np.testing.assert_allclose(maps[encoder], called[encoder], atol=1e-6)
    assert maps[cross].shape == (2, 2, 2, 4, 3)


@pytest.mark.slow
def test_a_draft_changes_nothing(writer):
    draft = lively(ka.models.causal_language_model(V, **SIZES))
    expected = G.generate(writer, PROMPTS, 5)
    assert np.array_equal(G.generate(writer, PROMPTS, 5, draft_model=draft), expected)


@pytest.mark.slow
def test_new_weights_count_at_once():
    model = lively(ka.models.causal_language_model(V, **SIZES))
    G.generate(model, [[1]], 5)
    before = [weight.numpy() for weight in model.weights]
    model.set_weights([weight[::-1] for weight in before])
    assert G.generate(model, [[1]], 5).tolist() == [anew(model, [1], 5)]


@pytest.mark.slow
def test_caches_of_differential_and_latent_attention(writer):
    small = G.generate(writer, PROMPTS, 5, cache_dtype="int8", return_scores=True)
    whole = G.generate(writer, PROMPTS, 5, return_scores=True)
    np.testing.assert_allclose(small.scores[:, 0], whole.scores[:, 0], atol=0.05)
    short = G.generate(writer, [[1, 2, 3]], 30, memory_length=2)
    assert short.shape == (1, 30)


@pytest.mark.slow
def test_positions_that_end_are_an_error(writer):
    model = ka.models.causal_language_model(V, position=ka.positions.Learned(6), **SIZES)
    for sampler in ("greedy", G.Beam(2)):  # the last token is read by nobody, and takes no place
        assert G.generate(model, [[1, 2, 3]], 4, sampler).shape == (1, 4)
        with pytest.raises(ValueError, match="7 tokens .* more than.*Choose at most 6"):
            G.generate(model, [[1, 2, 3]], 5, sampler)


def test_generate_refuses_int4_caches_and_fractional_ids(writer, translator):
    with pytest.raises(ValueError, match="dtype='int4': expected 'int8'"):
        G.generate(writer, [[1]], 2, cache_dtype="int4")
    with pytest.raises(ValueError, match="The source is float64, but the encoder reads ids"):
        G.generate(translator, np.array([[3.5]]), 2, start_token_id=1)


def test_models_that_cannot_generate_are_refused():
    with pytest.raises(ValueError, match="cannot generate"):
        G.generate("gpt2", [[1]], 2)
    labeler = ka.models.sequence_labeler(V, 3, **SIZES)
    with pytest.raises(ValueError, match="attends to later tokens"):
        G.generate(labeler, [[9]], 2)  # an id of its vocabulary, if none of its labels
