"""The dependency parser: padding, weights of a labeler, and packed documents."""

import numpy as np
import pytest

import keras_attention as ka
from tests.stacks import embed_characters

SIZE = dict(hidden_dim=16, arc_dim=8, label_dim=4)


ENCODERS = {
    "Transformer": ka.models.TransformerEncoder.of_size(1, 2, 16, 20),
    "Conformer": ka.models.ConformerEncoder.of_size(1, 2, 16, 20, kernel_size=3),
    "LSTM": ka.models.RecurrentStack(1, 16, "lstm"),
}


@pytest.mark.parametrize("name", ENCODERS)
def test_padding_changes_nothing(name):
    model = ka.models.dependency_parser(30, 5, encoder=ENCODERS[name], **SIZE)
    ids = np.array([[4, 9, 7]], "int32")
    short, long = model(ids), model(np.pad(ids, [(0, 0), (0, 4)]))
    assert short["arc_scores"].shape == (1, 3, 4)
    assert short["label_scores"].shape == (1, 3, 4, 5)
    for name, scores in short.items():
        np.testing.assert_allclose(long[name][:, :3, :4], scores, atol=1e-5)
        assert (np.asarray(long[name])[:, :3, 4:] < -5e4).all()


def test_the_encoder_is_that_of_the_labeler():
    """Check with characters as well."""
    settings = dict(num_layers=1, num_heads=2, hidden_dim=16, embedding=embed_characters(9))
    labeler = ka.models.sequence_labeler(30, 7, **settings)
    parser = ka.models.dependency_parser(30, 5, arc_dim=8, label_dim=4, **settings)
    names = [w.path for w in labeler.weights if not w.path.startswith("logits")]
    heads = ("arc_scores", "label_scores")
    assert names == [w.path for w in parser.weights if not w.path.startswith(heads)]


def test_convolutions_of_conformer_blocks_reach_neighbors():
    """Hide all other words from the attention."""
    encoder = ka.models.ConformerEncoder.of_size(
        1, 2, 16, 20, kernel_size=3, mask=ka.masks.Window(1)
    )
    model = ka.models.sequence_labeler(30, 5, hidden_dim=16, encoder=encoder)
    before, after = (np.asarray(model(np.array([[4, 9, k, 7, 8]]))) for k in (3, 5))
    changed = np.abs(before - after).max(axis=-1)[0] > 1e-6
    assert changed.tolist() == [False, True, True, True, False]


@pytest.mark.parametrize("name", ["Conformer", "LSTM"])
def test_packed_documents_need_attention_only(name):
    packed = ka.models.TextEmbedding(packed=True)
    with pytest.raises(ValueError, match="was called with segment_ids"):
        ka.models.sequence_labeler(30, 5, hidden_dim=16, embedding=packed, encoder=ENCODERS[name])
