"""The dependency parser: what pads it changes nothing, and a small one learns trees."""

import numpy as np

import keras_attention as ka

SIZE = dict(num_layers=1, num_heads=2, hidden_dim=16, intermediate_dim=20, arc_dim=8, label_dim=4)


def test_padding_changes_nothing():
    model = ka.models.dependency_parser(30, 5, **SIZE)
    ids = np.array([[4, 9, 7]], "int32")
    short, long = model(ids), model(np.pad(ids, [(0, 0), (0, 4)]))
    assert short["arc_scores"].shape == (1, 3, 4)
    assert short["label_scores"].shape == (1, 3, 4, 5)
    for name, scores in short.items():
        np.testing.assert_allclose(long[name][:, :3, :4], scores, atol=1e-5)
        assert (np.asarray(long[name])[:, :3, 4:] < -5e4).all()


def test_the_trunk_is_that_of_the_labeler():
    """Characters, too: the weights of a tagger are those of a parser, but for the heads."""
    settings = dict(num_layers=1, num_heads=2, hidden_dim=16, character_vocabulary_size=9)
    labeler = ka.models.sequence_labeler(30, 7, **settings)
    parser = ka.models.dependency_parser(30, 5, arc_dim=8, label_dim=4, **settings)
    names = [w.path for w in labeler.weights if not w.path.startswith("logits")]
    heads = ("arc_scores", "label_scores")
    assert names == [w.path for w in parser.weights if not w.path.startswith(heads)]
