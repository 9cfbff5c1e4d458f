"""`AdamW` equals Keras's optimizer with all settings, and both load the same files."""

import keras
import numpy as np
import pytest
from keras import ops

import keras_attention as ka

SHAPES = {"kernel": (5, 7), "bias": (7,), "table": (20, 4)}


def make_variables():
    generator = np.random.default_rng(0)
    return [
        keras.Variable(generator.normal(size=shape).astype("float32"), name=name)
        for name, shape in SHAPES.items()
    ]


def step(optimizer, variables, count=6, seed=1):
    generator = np.random.default_rng(seed)
    for _ in range(count):
        gradients = [generator.normal(size=x.shape).astype("float32") for x in variables]
        optimizer.apply([ops.convert_to_tensor(x) for x in gradients], variables)


def measure_difference(one, other):
    return max(np.abs(np.asarray(a) - np.asarray(b)).max() for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize(
    "settings",
    [
        dict(),
        dict(weight_decay=0.1, beta_1=0.5, beta_2=0.9, epsilon=1e-3),
        dict(global_clipnorm=0.5),
        dict(clipnorm=0.3),
        dict(clipvalue=0.1, use_ema=True, ema_momentum=0.9),
        dict(amsgrad=True),
        dict(learning_rate=keras.optimizers.schedules.CosineDecay(0.02, 5)),
        dict(gradient_accumulation_steps=2),
    ],
)
def test_equals_keras(settings):
    settings = {"learning_rate": 0.01, **settings}
    actual = []
    for make in (keras.optimizers.AdamW, ka.training.AdamW):
        variables, optimizer = make_variables(), make(**settings)
        optimizer.exclude_from_weight_decay(var_names=["bias"])
        step(optimizer, variables)
        actual.append([*variables, *optimizer.variables])
    begun = measure_difference(make_variables(), actual[0][:3])
    assert measure_difference(*actual) < 1e-6 and begun > 0.01


def test_equals_the_definition():
    """Compute Kingma and Ba (2015), end of section 2, in float64, with decoupled weight decay."""
    variables, generator = make_variables(), np.random.default_rng(1)
    step(ka.training.AdamW(0.01, weight_decay=0.1), variables)
    expected = [np.asarray(x, "float64") for x in make_variables()]
    first, second = ([np.zeros_like(x) for x in expected] for _ in range(2))
    for t in range(1, 7):
        for k, x in enumerate(expected):
            gradient = generator.normal(size=x.shape).astype("float32")
            first[k] = 0.9 * first[k] + 0.1 * gradient
            second[k] = 0.999 * second[k] + 0.001 * gradient.astype("float64") ** 2
            rate = 0.01 * np.sqrt(1 - 0.999**t) / (1 - 0.9**t)
            expected[k] = x * (1 - 0.01 * 0.1) - rate * first[k] / (np.sqrt(second[k]) + 1e-7)
    assert measure_difference(variables, expected) < 1e-6


def test_optimizers_load_each_others_files():
    kinds = (keras.optimizers.AdamW, ka.training.AdamW)
    for first, second in (kinds, kinds[::-1]):
        whole, optimizer = make_variables(), first(0.01)
        step(optimizer, whole, 3)
        state = {}
        optimizer.save_own_variables(state)
        other, going_on = [keras.Variable(x.numpy(), name=x.name) for x in whole], second(0.01)
        going_on.build(other)
        going_on.load_own_variables({key: np.asarray(value) for key, value in state.items()})
        step(optimizer, whole, 3, seed=2)
        step(going_on, other, 3, seed=2)
        assert measure_difference(whole, other) < 1e-6


def test_config_round_trip():
    optimizer = ka.training.AdamW(0.1, weight_decay=0.2, beta_1=0.8, global_clipnorm=3.0)
    again = keras.optimizers.deserialize(keras.optimizers.serialize(optimizer))
    assert type(again) is ka.training.AdamW and again.get_config() == optimizer.get_config()


@pytest.mark.slow
@pytest.mark.tensorflow
@pytest.mark.parametrize("settings", [{"global_clipnorm": 0.5}, {"gradient_accumulation_steps": 2}])
def test_embedding_rows_equal_keras(settings):
    ids = np.random.default_rng(0).integers(0, 20, (8, 5))
    actual = []
    for make in (keras.optimizers.AdamW, ka.training.AdamW):
        keras.utils.set_random_seed(0)
        tokens = keras.Input((None,), dtype="int32")
        x = keras.layers.Embedding(20, 4)(tokens)
        model = keras.Model(tokens, keras.layers.Dense(1)(x))
        model.compile(make(0.01, **settings), "mse", jit_compile=False)
        model.fit(ids, ids % 3, epochs=6, batch_size=4, verbose=0, shuffle=False)
        actual.append(model.get_weights())
    assert measure_difference(*actual) < 1e-5


@pytest.mark.slow
@pytest.mark.tensorflow
@pytest.mark.parametrize("jit_compile", [False, True])
def test_repeated_tokens_equal_adam(jit_compile):
    """Compare on gradients as large as the table. Keras squares repeated rows before it sums
    them, which is not Adam of the sum.
    """
    import tensorflow as tf

    ids = np.random.default_rng(0).integers(0, 20, (8, 5))
    labels = (ids % 3).astype("int32")

    def make():
        keras.utils.set_random_seed(0)
        tokens = keras.Input((None,), dtype="int32")
        x = keras.layers.Embedding(20, 4)(tokens)
        return keras.Model(tokens, keras.layers.Dense(3)(x))

    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    ours, theirs = make(), make()
    ours.compile(ka.training.AdamW(0.01), loss, jit_compile=jit_compile)
    ours.fit(ids, labels, epochs=4, batch_size=8, verbose=0)
    optimizer, weights = keras.optimizers.AdamW(0.01), theirs.trainable_variables
    for _ in range(4):
        with tf.GradientTape() as tape:
            error = loss(labels, theirs(ids))
        gradients = tape.gradient(error, [x.value for x in weights])
        assert isinstance(gradients[0], tf.IndexedSlices)
        optimizer.apply([tf.convert_to_tensor(x) for x in gradients], weights)
    assert measure_difference(ours.get_weights(), theirs.get_weights()) < 1e-6


@pytest.mark.slow
@pytest.mark.tensorflow
def test_learns_in_mixed_precision():
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1, dtype="mixed_float16")])
    optimizer = keras.optimizers.LossScaleOptimizer(ka.training.AdamW(0.1))
    model.compile(optimizer, "mse")
    x = np.random.default_rng(0).normal(size=(64, 4)).astype("float32")
    history = model.fit(x, x.sum(axis=1), epochs=20, verbose=0).history["loss"]
    assert history[-1] < 0.05 * history[0]


@pytest.mark.slow
@pytest.mark.tensorflow
def test_a_strategy_uses_the_step_of_keras():
    """Compare bit for bit. The fused kernel cannot update distributed variables."""
    import tensorflow as tf

    x = np.random.default_rng(0).normal(size=(32, 4)).astype("float32")
    actual = []
    for make in (keras.optimizers.AdamW, ka.training.AdamW):
        with tf.distribute.MirroredStrategy(["/cpu:0"]).scope():
            keras.utils.set_random_seed(0)
            model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(2)])
            model.compile(make(0.01), "mse")
        model.fit(x, x[:, :2], batch_size=8, epochs=2, shuffle=False, verbose=0)
        actual.append(model.get_weights())
    assert measure_difference(*actual) == 0
