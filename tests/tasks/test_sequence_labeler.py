"""`SequenceLabeler` with a conditional random field as its last layer."""

import numpy as np
import pytest

import keras_attention as ka
from keras_attention.core.entity_tags import find_forbidden

SIZE = dict(num_layers=1, num_heads=2, hidden_dim=16, dropout=0.0, jit_compile=False)
FAST = dict(batch_size=4, learning_rate=0.02, verbose=False)
ADA = ka.data.Sentence(("Ada", "Byron", "wrote"), ("B-name", "I-name", "O"))
BOB = ka.data.Sentence(("Then", "Bob", "saw", "Ada", "Byron"), ("O", "B-name", "O", *ADA.tags[:2]))
TRAIN = [ADA, BOB] * 20


def build(train=TRAIN, **options):
    return ka.tasks.SequenceLabeler.from_data(train, **SIZE, **options)


@pytest.fixture(scope="module")
def trained():
    task = build(crf=True)
    task.fit(TRAIN, epochs=6, **FAST)
    return task


@pytest.mark.parametrize("option", [dict(crf=True), dict(head="crf")], ids=str)
def test_the_layer_knows_the_tags(option):
    layer = build(**option).model.layers[-1]
    assert layer.labels == ["O", "B-name", "I-name"] and layer.scheme == "bio"


def test_untrained_models_predict_only_valid_tags():
    task = build(crf=True)
    kernel, bias = task.model.get_layer("emissions").weights
    kernel.assign(np.random.default_rng(0).normal(size=kernel.shape, scale=5.0))
    words = sorted({token for sentence in TRAIN for token in sentence.tokens})
    sentences = [list(np.random.default_rng(k).choice(words, 8)) for k in range(10)]
    predicted = task.predict(sentences)
    assert all(find_forbidden([t.tag for t in row], "bio") is None for row in predicted)
    assert len({token.tag for row in predicted for token in row}) > 1


def test_other_tags_may_follow_in_any_order():
    train = [ka.data.Sentence(("Dogs", "bark"), ("NOUN", "VERB"))] * 8
    layer = build(train, crf=True).model.layers[-1]
    assert layer.labels is None and layer.scheme is None


def test_two_heads_are_refused():
    with pytest.raises(ValueError, match="crf=True and head=.* are both heads. Leave one"):
        build(crf=True, head=ka.blocks.ConditionalRandomField())


def test_tags_that_break_the_scheme_are_refused():
    wrong = ka.data.Sentence(("saw", "Ada"), ("O", "I-name"))
    task = build(crf=True)
    with pytest.raises(ValueError, match="'saw Ada' has I-name after O .tag 2.*'bio' forbids"):
        task.make_loss(task.recipe, [wrong])


@pytest.mark.slow
def test_trained_tagger_finds_entities_with_their_characters(trained):
    assert trained.evaluate([ADA, BOB])["entity_f1"] == 1.0
    text = "Then Bob saw Ada Byron"
    (entities,) = trained.predict([text], group_entities=True)
    assert [entity.text for entity in entities] == ["Bob", "Ada Byron"]
    assert [text[slice(*entity.characters)] for entity in entities] == ["Bob", "Ada Byron"]
    assert all(0.5 < entity.probability <= 1 for entity in entities)


@pytest.mark.slow
def test_new_labels_get_a_new_layer(trained, tmp_path):
    trained.save_to_preset(tmp_path / "preset")
    task = ka.tasks.from_preset(tmp_path / "preset")
    assert task.predict([BOB.tokens]) == trained.predict([BOB.tokens])
    place = ka.data.Sentence(("in", "Rome"), ("O", "B-place"))
    task.fit([ADA, place] * 10, epochs=1, **FAST)
    layer = task.model.layers[-1]
    assert layer.labels == list(task.preprocessor.labels.names) and "B-place" in layer.labels


@pytest.mark.slow
@pytest.mark.tensorflow
@pytest.mark.parametrize("quantization", [None, "float16", "int8_weights"])
def test_litert_files_decode(trained, quantization, tmp_path):
    report = trained.export(tmp_path / "model.tflite", quantization=quantization)
    assert all(row.argmax_agreement == 1.0 for row in report.parity)
    file = ka.tasks.from_preset(tmp_path, file="litert")
    for ours, theirs in zip(file.predict([BOB.tokens]), trained.predict([BOB.tokens]), strict=True):
        assert [token.tag for token in ours] == [token.tag for token in theirs]


@pytest.mark.slow
@pytest.mark.tensorflow
def test_int8_activations_are_refused(trained, tmp_path):
    """Check that the loss of precision is reported, not hidden in a file."""
    with pytest.raises(ka.export.ExportError, match='Use quantization="int8_weights"'):
        trained.export(tmp_path / "model.tflite", quantization="int8", calibration=TRAIN)
