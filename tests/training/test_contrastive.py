"""`InfoNCE` and `ContrastiveAccuracy`, compared with plain loops."""

import keras
import numpy as np
import pytest

import keras_attention as ka

# Two rows share a query, two a document, one row is ignored, and a hard negative is missing. One
# hard negative is the right document of another row with the same query.
NUMBERS = np.array([[0, 9, 5], [1, 10, -1], [0, 11, 9], [2, 10, 12], [-1, 13, 6], [3, 14, 10]])
random = np.random.default_rng(0)
LOGITS = random.normal(size=(6, 12)).astype("float32")


def find_matches(numbers):
    """Return a dict from the number of a query to the set of numbers of its documents."""
    matches = {}
    for query, match, *_ in numbers:
        if query >= 0 and match >= 0:
            matches.setdefault(query, set()).add(match)
    return matches


def list_documents(numbers):
    return [*numbers[:, 1], *(n for column in numbers.T[2:] for n in column)]


def list_visible(numbers, b):
    """Return the indices of the documents that the logits of row b are compared with."""
    rows, matches = len(numbers), find_matches(numbers)
    visible = []
    for c, number in enumerate(list_documents(numbers)):
        ignored = c < rows and min(numbers[c, :2]) < 0
        if c == b or (number >= 0 and not ignored and number not in matches[numbers[b, 0]]):
            visible.append(c)
    return visible


def define_losses(numbers, logits):
    """Return the losses (B,), with NaN for ignored rows."""
    rows, losses = len(numbers), []
    counted = [b for b in range(rows) if min(numbers[b, :2]) >= 0]
    for b in range(rows):
        if b not in counted:
            losses.append(np.nan)
            continue
        of_query = [np.exp(float(logits[b, c])) for c in list_visible(numbers, b)]
        of_document = [
            np.exp(float(logits[j, b])) for j in counted if b in list_visible(numbers, j)
        ]
        own = np.exp(float(logits[b, b]))
        losses.append(-(np.log(own / sum(of_query)) + np.log(own / sum(of_document))) / 2)
    return np.array(losses)


@pytest.mark.parametrize("negatives", [True, False])
def test_loss_is_the_mean_of_both_cross_entropies(negatives):
    numbers = NUMBERS if negatives else NUMBERS[:, :2]
    logits = LOGITS if negatives else LOGITS[:, :6]
    losses = define_losses(numbers, logits)
    loss = ka.training.InfoNCE()
    assert float(loss(numbers, logits)) == pytest.approx(np.nanmean(losses), abs=1e-6)
    rows = keras.ops.convert_to_numpy(ka.training.InfoNCE(reduction="none")(numbers, logits))
    np.testing.assert_allclose(rows, np.nan_to_num(losses), atol=1e-6)


def test_loss_of_several_dimensions_is_their_mean():
    stacked = np.stack([LOGITS, 2 * LOGITS, -LOGITS], axis=1)
    expected = np.nanmean([define_losses(NUMBERS, stacked[:, k]) for k in range(3)])
    assert float(ka.training.InfoNCE()(NUMBERS, stacked)) == pytest.approx(expected, abs=1e-6)


def test_plain_pairs_have_the_loss_of_clip():
    """Compare with two cross-entropies whose labels are the numbers of the rows."""
    numbers = np.stack([np.arange(6), np.arange(6, 12)], axis=1)
    logits = LOGITS[:, :6]
    cross_entropy = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    sides = [float(cross_entropy(np.arange(6), x)) for x in (logits, logits.T)]
    loss = float(ka.training.InfoNCE()(numbers, logits))
    assert loss == pytest.approx(np.mean(sides), abs=1e-6)


def test_ignored_rows_have_no_part_in_the_loss():
    rows = [0, 1, 2, 3, 5]
    columns = [*rows, *(6 + k for k in rows)]
    loss = ka.training.InfoNCE()
    expected = float(loss(NUMBERS[rows], LOGITS[np.ix_(rows, columns)]))
    numbers, logits = NUMBERS.copy(), LOGITS.copy()
    numbers[4, 2] = -1
    logits[4], logits[:, [4, 10]] = np.nan, np.nan
    assert float(loss(numbers, logits)) == pytest.approx(expected, abs=1e-6)


def test_sample_weights_belong_to_rows():
    weights = np.array([1.0, 2.0, 0.5, 0.0, 3.0, 1.0], "float32")
    losses = np.nan_to_num(define_losses(NUMBERS, LOGITS))
    for logits in (LOGITS, np.stack([LOGITS, LOGITS], axis=1)):
        loss = float(ka.training.InfoNCE()(NUMBERS, logits, weights))
        assert loss == pytest.approx((losses * weights).sum() / 5, abs=1e-6)


@pytest.mark.parametrize("weighted", [False, True])
def test_accuracy_is_the_share_of_right_documents(weighted):
    weights = np.array([1.0, 2.0, 0.5, 0.0, 3.0, 1.0]) if weighted else np.ones(6)
    plain = LOGITS.copy()
    plain[[1, 5], [1, 5]] += 4
    right, total = 0.0, 0.0
    for b in (0, 1, 2, 3, 5):
        visible = list_visible(NUMBERS, b)
        right += weights[b] * (max(visible, key=lambda c: plain[b, c]) == b)
        total += weights[b]
    for logits in (plain, np.stack([plain, plain], axis=1)):
        accuracy = ka.training.ContrastiveAccuracy()
        accuracy.update_state(NUMBERS, logits, weights if weighted else None)
        assert float(accuracy.result()) == pytest.approx(right / total, abs=1e-6)
    assert 0 < right < total


WRONG = {
    "queries only": (np.zeros((6, 1)), LOGITS),
    "one axis": (np.zeros(6), LOGITS),
    "fewer rows": (NUMBERS[:5], LOGITS),
    "fewer documents": (NUMBERS, LOGITS[:, :11]),
    "no documents": (NUMBERS, LOGITS[:, 0]),
    "four axes": (NUMBERS, LOGITS[:, None, None]),
}


@pytest.mark.parametrize("name", WRONG)
def test_other_shapes_are_refused(name):
    numbers, logits = WRONG[name]
    for compute in (ka.training.InfoNCE(), ka.training.ContrastiveAccuracy().update_state):
        with pytest.raises(ValueError, match="labels of shape .* for predictions of shape"):
            compute(numbers, logits)
    with pytest.raises(ValueError, match="sample_weight of shape"):
        ka.training.InfoNCE()(NUMBERS, LOGITS, np.ones(5))


@pytest.mark.tensorflow
def test_unknown_sizes_are_compared_at_run_time():
    import tensorflow as tf

    specs = [tf.TensorSpec([None, None], "int32"), tf.TensorSpec([None, None])]
    loss = tf.function(ka.training.InfoNCE(), input_signature=specs)
    expected = np.nanmean(define_losses(NUMBERS, LOGITS))
    assert float(loss(NUMBERS, LOGITS)) == pytest.approx(expected, abs=1e-6)
    for numbers, logits in ((NUMBERS[:1], LOGITS), (NUMBERS, LOGITS[:, :6])):
        with pytest.raises(tf.errors.InvalidArgumentError):
            loss(numbers, logits)


def test_loss_and_metric_are_saved():
    for part in (ka.training.InfoNCE(), ka.training.ContrastiveAccuracy()):
        config = keras.saving.serialize_keras_object(part)
        assert type(keras.saving.deserialize_keras_object(config)) is type(part)


@pytest.mark.slow
def test_training_learns_temperature_and_vectors():
    """Train two linear maps to undo a rotation."""
    keras.utils.set_random_seed(0)
    x = random.normal(size=(64, 4)).astype("float32")
    rotation, _ = np.linalg.qr(random.normal(size=(4, 4)))
    y = (x @ rotation).astype("float32")
    inputs = {name: keras.Input((4,), name=name) for name in "xy"}
    vectors = [keras.layers.Dense(4)(each) for each in inputs.values()]
    layer = ka.blocks.ContrastiveLogits(0.5, dimensions=[4, 2])
    model = keras.Model(inputs, layer(*vectors))
    accuracy = ka.training.ContrastiveAccuracy()
    model.compile(keras.optimizers.Adam(0.05), ka.training.InfoNCE(), metrics=[accuracy])
    numbers = np.stack([np.arange(64), np.arange(64, 128)], axis=1)
    data = {"x": x, "y": y}
    history = model.fit(data, numbers, batch_size=16, epochs=40, verbose=0).history
    assert history["loss"][-1] < 0.3 * history["loss"][0]
    assert history["contrastive_accuracy"][-1] > 0.8
    temperature = float(np.exp(-keras.ops.convert_to_numpy(layer.logit_scale)))
    assert 0.01 - 1e-6 <= temperature < 0.4
