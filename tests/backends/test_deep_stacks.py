"""Rematerialized blocks compute the same as plain ones. Scanned stacks need JAX."""

import keras
import numpy as np
import pytest

import keras_attention as ka
from tests.backends.marks import slow_on_tensorflow
from tests.gradients import enabled
from tests.stacks import make_encoder

random = np.random.default_rng(0)
B, T, D = 4, 5, 8
X = random.normal(size=(2 * B, T, D)).astype("float32")
SIZE = dict(num_layers=3, num_heads=2, hidden_dim=D, intermediate_dim=12)
DROPOUTS = dict(dropout=0.2, attention_dropout=0.2)
JAX = keras.backend.backend() == "jax"


def attention(**kwargs):
    return ka.attention.MultiHeadAttention(2, 4, dropout=0.2, **kwargs)


def feed_forward():
    return ka.blocks.FeedForward(12, dropout=0.2)


def experts():
    return ka.blocks.MixtureOfExperts([feed_forward() for _ in range(2)], top_k=1)


# Blocks with all that a call may draw, change or add: dropouts, moving averages, losses, metrics.
BLOCKS = {
    "encoder": lambda **kwargs: ka.blocks.EncoderBlock(
        attention(position="relative_bias"), feed_forward(), stochastic_depth=0.3, **kwargs
    ),
    "decoder": lambda **kwargs: ka.blocks.DecoderBlock(
        attention(mask="causal"), attention(), feed_forward(), norm="resi_dual", **kwargs
    ),
    "conformer": lambda **kwargs: ka.blocks.ConformerBlock(
        feed_forward(), attention(position="rotary"), feed_forward(), **kwargs
    ),
    "experts": lambda **kwargs: ka.blocks.EncoderBlock(attention(), experts(), **kwargs),
}


def chain(kind, num_blocks=2, **kwargs):
    """Build a model of blocks, called on padded vectors."""
    keras.backend.clear_session()
    keras.utils.set_random_seed(0)
    inputs = keras.Input((T, D))
    x = source = keras.layers.Masking(9.0)(keras.layers.Identity()(inputs))
    for i in range(num_blocks):
        block = BLOCKS[kind](name=f"block_{i}", dropout=0.2, **kwargs)
        x = block(x, source) if kind == "decoder" else block(x)
    return keras.Model(inputs, x[0] if kind == "decoder" else x)


def train(model, eager=False):
    """Return the losses of two steps, and the state after them: weights, seeds and averages."""
    model.compile(
        keras.optimizers.SGD(0.1), "mse", run_eagerly=eager, jit_compile=JAX and not eager
    )
    x = np.where(np.arange(T)[:, None] < 4, X, 9.0).astype("float32")
    losses = []
    keep = keras.callbacks.LambdaCallback(on_train_batch_end=lambda _, logs: losses.append(logs))
    with enabled():
        model.fit(x, X, batch_size=B, shuffle=False, verbose=0, callbacks=[keep])
    state = [keras.ops.convert_to_numpy(variable.value) for variable in model.variables]
    return [float(logs["loss"]) for logs in losses], state


def assert_same(actual, expected):
    (losses, state), (expected_losses, expected_state) = actual, expected
    np.testing.assert_allclose(losses, expected_losses, rtol=1e-6)
    for one, other in zip(state, expected_state, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)


def assert_remat_changes_nothing(kind, num_blocks=2, **kwargs):
    models = (chain(kind, num_blocks, remat=remat) for remat in (False, True))
    expected, actual = (train(model, **kwargs) for model in models)
    assert expected[0][0] != expected[0][1]
    assert_same(actual, expected)


@slow_on_tensorflow
@pytest.mark.parametrize("kind", BLOCKS)
def test_rematerialised_blocks_lose_the_same(kind):
    assert_remat_changes_nothing(kind)


@pytest.mark.tensorflow
def test_rematerialised_blocks_lose_the_same_in_eager_mode():
    assert_remat_changes_nothing("experts", num_blocks=1, eager=True)


@slow_on_tensorflow
def test_weights_are_read_as_they_are_kept():
    """Check that mixed precision casts a layer's weights where they are used, not before."""
    keras.config.set_dtype_policy("mixed_bfloat16")
    try:
        expected, actual = (train(chain("experts", remat=remat)) for remat in (False, True))
    finally:
        keras.config.set_dtype_policy("float32")
    np.testing.assert_allclose(actual[0], expected[0], rtol=1e-6)


@slow_on_tensorflow
def test_a_saved_model_keeps_the_setting(tmp_path):
    model = chain("decoder", remat=True)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert loaded.get_layer("block_1").remat is True
    np.testing.assert_allclose(loaded(X), model(X), atol=1e-6)


def labeler(**kwargs):
    keras.backend.clear_session()
    keras.utils.set_random_seed(0)
    encoder = make_encoder(**{"position": "rotary", **SIZE, **DROPOUTS, **kwargs})
    return ka.models.sequence_labeler(20, 6, hidden_dim=SIZE["hidden_dim"], encoder=encoder)


IDS = random.integers(1, 20, size=(B, T)).astype("int32") * (np.arange(T) < [[5], [3], [4], [1]])


@pytest.mark.skipif(JAX, reason="JAX has it")
def test_other_backends_refuse_to_scan():
    with pytest.raises(ValueError, match="scan_layers=True is for JAX, but Keras runs on"):
        labeler(scan_layers=True)
