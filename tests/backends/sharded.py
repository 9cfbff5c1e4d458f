"""Tiny models trained on one device and on eight. As a program it prints their losses."""

import json
import sys

import keras
import numpy as np

import keras_attention as ka
from tests.stacks import make_encoder, make_writer

SIZE = dict(num_layers=1, num_heads=4, hidden_dim=16, intermediate_dim=32, dropout=0.1)
BATCH, LENGTH, VOCABULARY, CLASSES = 16, 8, 40, 8


def labeler(**stack):
    encoder = make_encoder(**{**SIZE, "position": "relative_bias", **stack})
    return ka.models.sequence_labeler(
        VOCABULARY, CLASSES, hidden_dim=SIZE["hidden_dim"], encoder=encoder
    )


def classifier():
    return ka.models.text_classifier(VOCABULARY, CLASSES, **SIZE)


def vision():
    return ka.models.vision_transformer((8, 8), CLASSES, patch_size=4, num_channels=1, **SIZE)


def causal():
    """Grouped keys: two heads, which four devices cannot share."""
    return make_writer(VOCABULARY, num_key_value_heads=2, activation="swiglu", **SIZE)


def masked():
    return ka.models.masked_language_model(
        VOCABULARY, embedding=ka.models.TextEmbedding.of_bert(), **SIZE
    )


def translator():
    return ka.models.seq2seq_transformer(VOCABULARY, VOCABULARY, **SIZE)


def recurrent():
    return ka.models.seq2seq_recurrent(
        VOCABULARY, VOCABULARY, embedding_dim=8, hidden_dim=16, dropout=0.1
    )


def experts():
    """Keys and values out of a latent vector, and a router to four experts, in blocks by hand."""
    ids = keras.Input((None,), dtype="int32")
    x = ka.blocks.TokenEmbedding(VOCABULARY, 16)(ids)
    for capacity_factor in (None, 1.0):
        attention = ka.attention.LatentAttention(4, 4, latent_dim=8, rotary_dim=4, mask="causal")
        several = [ka.blocks.FeedForward(32, "swiglu") for _ in range(4)]
        feed_forward = ka.blocks.MixtureOfExperts(several, capacity_factor=capacity_factor)
        x = ka.blocks.EncoderBlock(attention, feed_forward, dropout=0.1)(x)
    return keras.Model(ids, keras.layers.Dense(VOCABULARY)(x))


BUILDERS = {
    make.__name__: make
    for make in (labeler, classifier, vision, causal, masked, translator, recurrent, experts)
}
LAYOUTS = {
    "data": ({"data": 8}, False),
    "fully sharded": ({"data": 8}, True),
    "tensor 2x4": ({"data": 2, "model": 4}, False),
    "tensor 4x2": ({"data": 4, "model": 2}, False),
    "fully sharded, tensor 2x4": ({"data": 2, "model": 4}, True),
    "sequence 2x4": ({"data": 2, "sequence": 4}, False),
}


def draw(name, count):
    """Draw inputs and labels of `count` examples. The lengths of rows are very uneven."""
    random = np.random.default_rng(0)
    if name == "vision":
        x = random.random((count, 8, 8, 1), dtype="float32")
        return x, random.integers(0, CLASSES, count)
    lengths = random.integers(1, LENGTH + 1, (count, 1)) // random.integers(1, 4, (count, 1)) + 1
    tokens = random.integers(1, VOCABULARY, (2, count, LENGTH)).astype("int32")
    ids, targets = tokens * (np.arange(LENGTH) < lengths)
    if name == "classifier":
        return ids, random.integers(0, CLASSES, count)
    if name == "labeler":
        return ids, np.where(ids > 0, targets % CLASSES, 0)
    if name == "masked":
        return {"token_ids": ids, "segment_ids": np.minimum(ids, 1) * (targets % 2)}, targets
    if name in ("translator", "recurrent"):
        return {"source_ids": ids, "target_ids": targets}, np.roll(targets, -1, axis=1)
    return ids, np.roll(ids, -1, axis=1)


def train(name, **stack):
    """Return a model, its losses in three steps, and the loss of a batch that 8 does not divide."""
    keras.utils.set_random_seed(0)
    model = BUILDERS[name](**stack)
    if name in ("classifier", "vision"):
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    else:
        loss = ka.training.MaskedSparseCategoricalCrossentropy()
    model.compile(keras.optimizers.Adam(0.01), loss)
    losses = []
    keep = keras.callbacks.LambdaCallback(on_train_batch_end=lambda _, logs: losses.append(logs))
    x, y = draw(name, 3 * BATCH)
    model.fit(x, y, batch_size=BATCH, shuffle=False, verbose=0, callbacks=[keep])
    losses = [float(logs["loss"]) for logs in losses]
    x, y = keras.tree.map_structure(lambda a: a[: BATCH - 3], (x, y))
    return model, [*losses, float(model.evaluate(x, y, batch_size=BATCH, verbose=0))]


def count_split(model):
    """Return how many weights no device holds whole, and how many of Adam's two numbers of each."""
    weights = [w for w in model.weights if not w.value.sharding.is_fully_replicated]
    slots = [v for v in model.optimizer.variables if not v.value.sharding.is_fully_replicated]
    return len(weights), len(slots)


def compare(name):
    """Return {layout: losses, counts of split weights, report as text}, "one device" first."""
    results = {"one device": {"losses": train(name)[1]}}
    for layout_name, (mesh, fully_sharded) in LAYOUTS.items():
        layout = ka.distribution.RoleParallel(mesh, fully_sharded=fully_sharded)
        with layout.scope():
            model, losses = train(name)
            report = layout.report(model)
        weights, slots = count_split(model)
        assert weights == len(report.split), str(report)
        held = sum(w.value.addressable_shards[0].data.size for w in model.weights)
        assert held == report.size_on_a_device, str(report)
        results[layout_name] = {
            "losses": losses,
            "weights": weights,
            "slots": slots,
            "report": str(report),
        }
    return results


if __name__ == "__main__":
    print(json.dumps(compare(sys.argv[1])))
