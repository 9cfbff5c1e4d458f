"""Fine-tuning: LoRA, frozen blocks, lower rates for lower layers."""

import pathlib

import keras
import numpy as np
import pytest
from keras import ops

import keras_attention as ka
from tests.stacks import make_encoder

SIZE = dict(num_layers=3, num_heads=2, hidden_dim=8, intermediate_dim=16, dropout=0.0)
IDS = np.array([[3, 5, 7, 0], [2, 9, 4, 1]])
LABELS = np.array([0, 1])


def build(**more):
    keras.utils.set_random_seed(0)
    return ka.models.text_classifier(12, 2, **SIZE | more)


def train(model, optimizer=None, epochs=3):
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer or keras.optimizers.Adam(0.05), loss)
    model.fit(IDS, LABELS, epochs=epochs, verbose=0)


def weights_of(model):
    return {v.path: ops.convert_to_numpy(v) for v in model.weights if v.dtype == "float32"}


def changed(before, after):
    return {path for path in before if not np.array_equal(before[path], after[path])}


@pytest.mark.slow
@pytest.mark.tensorflow
def test_only_lora_and_the_head_are_trained():
    model = build()
    before, outputs = weights_of(model), ops.convert_to_numpy(model(IDS))
    ka.training.enable_lora(model, 2)
    np.testing.assert_allclose(model(IDS), outputs, atol=1e-6)  # LoRA starts at zero
    train(model)
    during, adapted = weights_of(model), ops.convert_to_numpy(model(IDS))
    frozen = {path for path in before if not path.startswith("logits")}
    assert not changed({path: before[path] for path in frozen}, during)
    assert changed(before, during) == {"logits/kernel", "logits/bias"}
    assert np.abs(adapted - outputs).max() > 0.01
    ka.training.merge_lora(model)
    np.testing.assert_allclose(model(IDS), adapted, atol=1e-5)
    after = weights_of(model)
    assert after.keys() == before.keys()
    kernels = {f"block_{i}/attention/{n}/kernel" for i in range(3) for n in ("query", "value")}
    assert changed(before, after) == kernels | {"logits/kernel", "logits/bias"}
    for path in kernels:  # of rank 2 in each head
        change = (after[path] - before[path]).transpose(1, 0, 2)
        assert (np.linalg.svd(change, compute_uv=False)[:, 2:] < 1e-5).all()
    train(model, epochs=1)
    assert len(changed(after, weights_of(model))) > len(kernels) + 2  # all are trained again


@pytest.mark.slow
@pytest.mark.tensorflow
def test_a_merged_model_is_saved_and_gets_lora_again(tmp_path):
    model = build()
    ka.training.enable_lora(model, 2, "all", lora_alpha=4.0)
    with pytest.raises(ValueError, match="has LoRA weights already: call merge_lora first"):
        ka.training.enable_lora(model, 2)
    train(model)
    ka.training.merge_lora(model)
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(again(IDS), model(IDS), atol=1e-6)
    assert "lora" not in str(again.get_config())
    ka.training.enable_lora(again, 3)
    assert sum("lora" in v.path for v in again.trainable_variables) == 3 * 2 * 2


@pytest.mark.parametrize("targets", [["query", "nose"], ["table"]])
def test_unknown_projections_are_refused(targets):
    with pytest.raises(ValueError, match=f"has no projection '{targets[-1]}'. It has attention_"):
        ka.training.enable_lora(build(), 2, targets)


@pytest.mark.slow
@pytest.mark.tensorflow
@pytest.mark.parametrize("num_blocks", [1, 3, None])
def test_frozen_blocks_keep_their_values(num_blocks):
    model = build()
    before = weights_of(model)
    ka.training.freeze(model, num_blocks)
    train(model)
    actual = changed(before, weights_of(model))
    frozen = ["embedding", *(f"block_{i}" for i in range(num_blocks or 3))]
    assert not [path for path in actual if path.startswith(tuple(frozen))]
    free = {f"block_{i}" for i in range(num_blocks or 3, 3)} | {"logits"}
    free |= set() if num_blocks is None else {"final_norm"}
    assert {path.split("/")[0] for path in actual} == free


def test_too_many_blocks_are_refused():
    with pytest.raises(ValueError, match="num_blocks=4: text_classifier has 3 blocks"):
        ka.training.freeze(build(), 4)
    with pytest.raises(ValueError, match="has no layer block_0"):
        ka.training.freeze(keras.Sequential([keras.layers.Dense(1)]))
    with pytest.raises(ValueError, match="decay=0: expected a number above 0"):
        ka.training.layer_rates(build(), 0)


@pytest.mark.slow
@pytest.mark.tensorflow
def test_lower_layers_learn_less():
    """Use Adam's first step, whose size is the learning rate."""
    model = build()
    rates = ka.training.layer_rates(model, 0.5)
    before = weights_of(model)
    train(model, ka.training.LayerwiseAdamW(0.01, rates=rates, weight_decay=0.0), epochs=1)
    after = weights_of(model)
    steps = {path: np.abs(after[path] - before[path]).max() for path in before}
    factors = {"logits/kernel": 1.0, "block_2/attention/value/kernel": 0.5}
    factors |= {"block_0/feed_forward/output/kernel": 0.125, "embedding/table/embeddings": 0.0625}
    for path, factor in factors.items():
        np.testing.assert_allclose(steps[path], 0.01 * factor, rtol=0.02)
    optimizer = model.optimizer
    again = type(optimizer).from_config(optimizer.get_config())
    assert again.rates == rates


def test_shared_blocks_have_one_rate():
    encoder = make_encoder(**SIZE, position="rotary", num_blocks=1)
    model = ka.models.text_classifier(12, 2, hidden_dim=SIZE["hidden_dim"], encoder=encoder)
    assert rates_of(model)["embedding/table/embeddings"] == 0.25


def rates_of(model):
    """Return {path: factor} of a model with one stack, whose paths are unique."""
    rates = ka.training.layer_rates(model, 0.5)
    return dict(zip([v.path for v in model.trainable_variables], rates, strict=True))


@pytest.mark.tensorflow
def test_rates_of_an_encoder_and_a_decoder(tmp_path):
    """Check a model with two weights called `final_norm/scale`."""
    folder = pathlib.Path(__file__).parents[1] / "pretrained" / "checkpoints" / "t5"
    model = ka.pretrained.load(folder)
    norms = [model.get_layer(side).get_layer("final_norm").scale for side in ("encoder", "decoder")]
    assert norms[0].path == norms[1].path
    rates = ka.training.layer_rates(model, 0.5)
    indices = [[v is norm for v in model.trainable_variables].index(True) for norm in norms]
    assert [rates[index] for index in indices] == [0.25, 1.0]  # two blocks here, one there
    assert rates[0] == 0.5**4 and model.trainable_variables[0].path == "embedding/table/embeddings"
    optimizer = ka.training.LayerwiseAdamW(0.01, rates=rates, weight_decay=0.0)
    model.compile(optimizer, "sparse_categorical_crossentropy")
    for k in range(2):  # with a constant gradient all steps are equal
        if k == 1:
            model.save(tmp_path / "model.keras")
            model = keras.saving.load_model(tmp_path / "model.keras")
        variables = model.trainable_variables
        before = [ops.convert_to_numpy(variable) for variable in variables]
        model.optimizer.apply([ops.ones(variable.shape) for variable in variables], variables)
        after = [ops.convert_to_numpy(variable) for variable in variables]
        steps = [(b - a).mean() for b, a in zip(before, after, strict=True)]
        np.testing.assert_allclose(steps, 0.01 * np.array(rates), rtol=0.01)


def test_a_wrong_number_of_rates_is_refused():
    model = build()
    rates = ka.training.layer_rates(model, 0.5)
    ka.training.freeze(model, 1)
    optimizer = ka.training.LayerwiseAdamW(rates=rates)
    with pytest.raises(ValueError, match="rates= has 53 factors, but 36 variables are trained"):
        optimizer.build(model.trainable_variables)
    few = ka.training.layer_rates(model, 0.5)
    assert len(few) == len(model.trainable_variables) and few[0] == 0.25  # of the second block
    ka.training.LayerwiseAdamW(rates=few).build(model.trainable_variables)
    with pytest.raises(ValueError, match="rates= is a dict: expected a list"):
        ka.training.LayerwiseAdamW(rates={"logits/kernel": 1.0})


@pytest.mark.slow
@pytest.mark.tensorflow
def test_lora_does_not_change_moving_statistics():
    """Train with a learning rate of 0: outputs must not change."""
    size = dict(num_layers=1, num_heads=2, hidden_dim=16, kernel_size=3)
    sound = ka.models.SpeechEmbedding(num_mel_bins=8)
    model = ka.models.speech_recognizer(5, embedding=sound, **size)
    features = np.random.default_rng(0).normal(size=(2, 32, 8)).astype("float32")
    x = {"features": features, "lengths": np.array([32, 32])}
    assert any(isinstance(layer, keras.layers.BatchNormalization) for layer in everything(model))
    ka.training.enable_lora(model, 2)
    before, outputs = values_below_the_head(model), ops.convert_to_numpy(model(x))
    model.compile(keras.optimizers.SGD(0.0), ka.training.MaskedCTC())
    model.fit(x, np.array([[1, 2], [3, 0]]), verbose=0)
    after = values_below_the_head(model)
    assert not [path for path in before if not np.array_equal(before[path], after[path])]
    np.testing.assert_allclose(ops.convert_to_numpy(model(x)), outputs, atol=1e-6)
    ka.training.merge_lora(model)
    norms = [x for x in everything(model) if isinstance(x, keras.layers.BatchNormalization)]
    assert all(layer.trainable for layer in norms)


def everything(model):
    return ka.core.keras_internals.all_layers(model)


def values_below_the_head(model):
    return {f"{k} {v.path}": ops.convert_to_numpy(v) for k, v in enumerate(model.weights)
            if "moving" in v.path or "block" in v.path}  # fmt: skip


def test_layers_frozen_before_lora_stay_frozen():
    model = build()
    model.get_layer("embedding").trainable = False
    model.get_layer("block_0").trainable = False
    ka.training.enable_lora(model, 2)
    assert not model.get_layer("block_0").trainable_variables  # it gets no LoRA
    assert model.get_layer("block_1").trainable_variables
    ka.training.merge_lora(model)
    assert not model.get_layer("embedding").trainable_variables
    assert not model.get_layer("block_0").trainable_variables
    assert all(v.trainable for v in model.get_layer("block_1").weights)
    kernel = model.get_layer("block_1").weights[0]
    kernel.trainable = False  # also for a single variable
    ka.training.enable_lora(model, 2)
    ka.training.merge_lora(model)
    assert not kernel.trainable


def test_lora_on_a_frozen_model_is_refused():
    model = build()
    ka.training.freeze(model)
    with pytest.raises(ValueError, match="with these projections are frozen"):
        ka.training.enable_lora(model, 2)


def test_layers_frozen_after_lora_stay_frozen():
    model = build()
    ka.training.enable_lora(model, 2)
    ka.training.freeze(model, 1)
    ka.training.merge_lora(model)
    assert not [v.path for v in model.trainable_variables if "embed" in v.path]
    assert not model.get_layer("block_0").trainable_variables
    assert not [v.path for v in model.trainable_variables if "block_0" in v.path]
    assert all(v.trainable for v in model.get_layer("block_1").weights)


def test_compiled_functions_work_after_merging():
    model = build(num_layers=1)
    outer = keras.Model(model.input, model(model.input))
    ka.training.enable_lora(model, 2)
    for variable in model.trainable_variables:
        variable.assign(ops.ones_like(variable) * 0.3 + ops.cast(variable, "float32"))
    expected = [one.predict(IDS, verbose=0) for one in (model, outer)]
    ka.training.merge_lora(model)
    for one, outputs in zip((model, outer), expected, strict=True):
        np.testing.assert_allclose(one.predict(IDS, verbose=0), outputs, atol=1e-5)
        np.testing.assert_allclose(one(IDS), outputs, atol=1e-5)
