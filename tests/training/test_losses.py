"""The loss compared with its definition in NumPy."""

import keras
import numpy as np
import pytest
from keras import ops

import keras_attention as ka

Loss = ka.training.MaskedSparseCategoricalCrossentropy


def by_definition(labels, logits, smoothing=0.0, ignore=-1):
    """Compute -sum(target * log(probability)) for every position, and 0 for ignored ones."""
    losses = np.zeros(labels.shape)
    classes = logits.shape[-1]
    for b, t in np.ndindex(labels.shape):
        if labels[b, t] == ignore:
            continue
        exponentials = np.exp(logits[b, t].astype("float64"))
        for c in range(classes):
            target = smoothing / classes + (1 - smoothing) * (c == labels[b, t])
            losses[b, t] -= target * np.log(exponentials[c] / exponentials.sum())
    return losses


@pytest.fixture
def batch():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 7, size=(3, 5))
    labels[0, 3:], labels[2, 1:] = -1, -1
    return labels, rng.normal(size=(3, 5, 7)).astype("float32") * 3


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.7])
def test_equals_the_definition(batch, smoothing):
    labels, logits = batch
    expected = by_definition(labels, logits, smoothing)
    each = Loss(smoothing, reduction=None)(labels, logits)
    np.testing.assert_allclose(each, expected, atol=1e-5)
    mean = expected.sum() / (labels >= 0).sum()
    np.testing.assert_allclose(Loss(smoothing)(labels, logits), mean, rtol=1e-5)
    total = Loss(smoothing, reduction="sum")(labels, logits)
    np.testing.assert_allclose(total, expected.sum(), rtol=1e-5)


def test_the_loss_equals_keras(batch):
    labels, logits = batch
    theirs = keras.losses.SparseCategoricalCrossentropy(from_logits=True, ignore_class=-1)
    np.testing.assert_allclose(Loss()(labels, logits), theirs(labels, logits), rtol=1e-6)
    counts = labels >= 0
    smoothed = keras.losses.CategoricalCrossentropy(from_logits=True, label_smoothing=0.2)
    expected = smoothed(np.eye(7)[labels[counts]], logits[counts])
    np.testing.assert_allclose(Loss(0.2)(labels, logits), expected, rtol=1e-5)


@pytest.mark.tensorflow
@pytest.mark.parametrize("label", [7, -2])
def test_a_label_above_the_classes_is_an_error(batch, label):
    labels, logits = batch
    labels[1, 1] = label
    with pytest.raises(tf_errors().InvalidArgumentError, match=r"is not in \[0, 7\)"):
        Loss(0.1)(labels, logits)


def tf_errors():
    import tensorflow as tf

    return tf.errors


def test_weights_and_ignore_class(batch):
    labels, logits = batch
    weights = np.array([1.0, 0.5, 2.0])
    expected = (by_definition(labels, logits) * weights[:, None]).sum() / (labels >= 0).sum()
    np.testing.assert_allclose(Loss()(labels, logits, weights[:, None]), expected, rtol=1e-5)
    shifted = np.where(labels < 0, 6, np.minimum(labels, 5))
    expected = by_definition(shifted, logits, ignore=6).sum() / (shifted != 6).sum()
    np.testing.assert_allclose(Loss(ignore_class=6)(shifted, logits), expected, rtol=1e-5)


def test_images_have_one_label_each():
    rng = np.random.default_rng(1)
    labels, logits = rng.integers(0, 5, 11), rng.normal(size=(11, 5))
    expected = by_definition(labels[:, None], logits[:, None], 0.1).mean()
    np.testing.assert_allclose(Loss(0.1)(labels, logits), expected, rtol=1e-5)


def test_loss_is_zero_if_no_position_counts(batch):
    _, logits = batch
    assert float(Loss(0.1)(np.full((3, 5), -1), logits)) == 0.0


def test_ignored_logits_have_no_gradient(batch):
    import tensorflow as tf

    labels, logits = batch
    logits = np.where((labels < 0)[..., None], np.nan, logits)
    variable = tf.Variable(logits)
    with tf.GradientTape() as tape:
        loss = Loss(0.1)(labels, variable)
    gradient = tape.gradient(loss, variable).numpy()
    assert np.isfinite(float(loss)) and np.isfinite(gradient).all()
    assert (gradient[labels < 0] == 0).all() and (gradient[labels >= 0] != 0).any(-1).all()


def test_large_logits_stay_finite():
    logits = np.array([[[1e4, -1e4, 0.0]]], "float32")
    np.testing.assert_allclose(Loss(0.3)(np.array([[1]]), logits), 0.8 * 2e4 + 0.1 * 1e4, rtol=1e-5)


def test_half_precision_is_computed_in_float32(batch):
    labels, logits = batch
    half = ops.cast(logits, "float16")
    expected = Loss(0.1)(labels, np.asarray(half, "float32"))
    assert keras.backend.standardize_dtype(Loss(0.1)(labels, half).dtype) == "float32"
    np.testing.assert_allclose(Loss(0.1)(labels, half), expected, rtol=1e-6)


def test_labels_are_not_rounded_with_bfloat16_floatx():
    keras.config.set_floatx("bfloat16")
    try:
        loss = Loss()(np.array([257]), np.eye(300, dtype="float32")[[257]] * 1e3)
    finally:
        keras.config.set_floatx("float32")
    assert float(loss) < 1e-3  # bfloat16 rounds 257 to 256, whose loss is 1000


def test_the_mask_of_the_model_is_applied():
    inputs = keras.Input((None,), dtype="int32")
    x = keras.layers.Embedding(11, 7, mask_zero=True)(inputs)
    model = keras.Model(inputs, x)
    ids, labels = np.array([[3, 4, 0], [5, 6, 7]]), np.array([[1, 2, 2], [3, -1, 5]])
    logits = model(ids)
    counted = np.array([[True, True, False], [True, False, True]])
    expected = by_definition(np.where(counted, labels, -1), np.asarray(logits)).sum() / 4
    np.testing.assert_allclose(Loss()(labels, logits), expected, rtol=1e-5)


@pytest.mark.slow
def test_fits(batch):
    labels, logits = batch
    model = keras.Sequential([keras.layers.Dense(7)])
    model.compile(keras.optimizers.Adam(0.1), Loss(0.05))
    history = model.fit(logits, labels, epochs=15, verbose=0).history["loss"]
    assert history[-1] < 0.7 * history[0]


def test_runs_compiled(batch):
    import tensorflow as tf

    labels, logits = map(tf.constant, batch)
    compiled = tf.function(Loss(0.1).__call__, jit_compile=True)
    np.testing.assert_allclose(compiled(labels, logits), Loss(0.1)(labels, logits), rtol=1e-5)


def test_round_trip():
    loss = Loss(0.1, ignore_class=-100, reduction="sum", name="crossing", dtype="float64")
    config = keras.saving.serialize_keras_object(loss)
    assert config["registered_name"] == "keras_attention>MaskedSparseCategoricalCrossentropy"
    revived = keras.saving.deserialize_keras_object(config)
    assert revived.get_config() == loss.get_config() and revived.dtype == "float64"


@pytest.mark.parametrize("smoothing", [-0.1, 1.0])
def test_invalid_label_smoothing_is_refused(smoothing):
    with pytest.raises(ValueError, match=f"label_smoothing={smoothing}.* below 1"):
        Loss(smoothing)


def test_class_weights_apply_to_their_class():
    generator = np.random.default_rng(0)
    labels, logits = np.array([[0, 2, -1], [1, 1, 0]]), generator.normal(size=(2, 3, 3))
    weights = [0.5, 1.0, 4.0]
    shares = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)
    each = [
        weights[k] * -np.log(share[k])
        for k, share in zip(labels.ravel(), shares.reshape(-1, 3), strict=True)
        if k >= 0
    ]
    loss = ka.training.MaskedSparseCategoricalCrossentropy(class_weights=weights)
    again = type(loss).from_config(loss.get_config())
    assert float(again(labels, logits)) == pytest.approx(np.mean(each), rel=1e-5)
    with pytest.raises(ValueError, match="2 class_weights for 3 classes: give one weight for each"):
        type(loss)(class_weights=[1.0, 2.0])(labels, logits)
    with pytest.raises(ValueError, match="class_weights=.*: expected numbers above 0"):
        type(loss)(class_weights=[1.0, 0.0])
