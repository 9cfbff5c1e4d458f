"""Images to tokens: structure, cache, and the tokens that each side depends on."""

import keras
import numpy as np
import pytest

import keras_attention as ka
from tests.grids import sampled

SIZE = dict(num_layers=1, num_heads=2, hidden_dim=16, intermediate_dim=20, patch_size=4)
random = np.random.default_rng(0)
BEGIN = {"start_token_id": 1, "end_token_id": 2}


def make(**kwargs):
    model = ka.models.image_to_sequence((8, 12), 9, **{**SIZE, "dropout": 0.0, **kwargs})
    generator = np.random.default_rng(1)
    for weight in model.trainable_weights:
        weight.assign(generator.normal(size=weight.shape, scale=0.4))
    return model


def compute(model, images, ids):
    return np.asarray(model({"images": images, "target_ids": np.asarray(ids)}))


IMAGES = random.uniform(size=(2, 8, 12, 3)).astype("float32")


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings",
    sampled(
        [
            dict(),
            dict(
                num_decoder_layers=2,
                decoder_position=ka.positions.Learned(9),
                embedding=ka.models.ImageEmbedding(num_registers=2),
            ),
            dict(
                embedding=ka.models.ImageEmbedding(stem_filters=(4,)),
                patch_size=2,
                position=ka.positions.Sinusoidal2D((2, 3)),
                decoder_position="rotary",
            ),
            dict(
                tie_embeddings=False,
                target_embedding=ka.models.TextEmbedding(padding_id=None),
                decoder=ka.models.TransformerDecoder.of_size(
                    1, 2, 16, 20, norm="post", cross_position="alibi"
                ),
            ),
        ],
        2,
    ),
)
def test_cached_generation_equals_the_best_tokens_without_cache(settings):
    model = make(**settings)
    together = ka.generation.generate(model, {"images": IMAGES}, 6, **BEGIN)
    for row, written in enumerate(together):
        text = [1]
        for token in written:
            logits = compute(model, IMAGES[row : row + 1], [text])[0, -1]
            first = 0 if "target_embedding" in settings else 1  # without padding
            assert token == logits[first:].argmax() + first  # padding is never written
            text.append(int(token))
            if token == 2:
                break
    beams = ka.generation.generate(model, {"images": IMAGES}, 6, ka.generation.Beam(3), **BEGIN)
    assert beams.shape == (2, 6)


def test_a_token_depends_on_the_picture_and_earlier_tokens():
    model = make()
    ids = [[1, 4, 5, 6]] * 2
    before = compute(model, IMAGES, ids)
    later = compute(model, IMAGES, [[1, 4, 7, 3]] * 2)
    np.testing.assert_allclose(later[:, :2], before[:, :2], atol=1e-6)
    assert np.abs(later[:, 2:] - before[:, 2:]).max() > 1e-3
    for row, column in np.ndindex(2, 3):  # each patch counts for every token
        changed = IMAGES.copy()
        changed[:, 4 * row : 4 * row + 4, 4 * column : 4 * column + 4] += 0.5
        assert (np.abs(compute(model, changed, ids) - before).max(axis=(0, 2)) > 1e-4).all()


def test_the_encoder_is_that_of_a_vision_transformer():
    model = make()
    encoder = ka.models.image_encoder((8, 12), **SIZE, pooling=None)
    encoder.set_weights(model.get_layer("encoder").get_weights())
    encoded = model.get_layer("encoder")({"images": keras.ops.array(IMAGES)})
    np.testing.assert_allclose(encoded, encoder(IMAGES), atol=1e-6)
    ids = keras.ops.array([[1, 4]] * 2)
    logits = model.get_layer("decoder")({"target_ids": ids, "encoded": encoded})
    np.testing.assert_allclose(logits, compute(model, IMAGES, [[1, 4]] * 2), atol=1e-5)


@pytest.mark.slow
def test_saved_model_computes_the_same_outputs_when_loaded(tmp_path):
    model = make(num_decoder_layers=2)
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    ids = [[1, 4, 5]] * 2
    np.testing.assert_array_equal(compute(again, IMAGES, ids), compute(model, IMAGES, ids))


def test_refuses_invalid_arguments():
    with pytest.raises(ValueError, match="patch"):
        ka.models.image_to_sequence(30, 9, **SIZE)
    with pytest.raises(ValueError, match=r"pass ka.positions.Learned\(max_length="):
        ka.models.image_to_sequence(8, 9, decoder_position="learned", **SIZE)
    with pytest.raises(TypeError, match="'pooling'"):
        ka.models.image_to_sequence(8, 9, pooling="mean", **SIZE)
