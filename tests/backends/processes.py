"""Tiny models trained by `ka.data`'s batches on one device and by two processes together.

Run as a program, `python -m tests.backends.processes STAGE FOLDER [RANK PORT]`, it prints JSON.
"""

import json
import os
import signal
import sys

import keras
import numpy as np

import keras_attention as ka

SIZE = dict(num_layers=1, num_heads=8, hidden_dim=16, intermediate_dim=32, dropout=0.1)
PROCESSES, DEVICES, EPOCHS = 2, 4, 3
# The mesh of each case. Some split batches only, some weights in a process or over both.
LAYOUTS = {
    "translator": ({"data": 8}, False),
    "labeler": ({"data": 2, "model": 4}, True),
    "vision": ({"data": 1, "model": 8}, False),
    "language": ({"data": 8}, True),
}


def translator():
    random = np.random.default_rng(0)
    texts = ["".join(random.choice(list("abcde"), size=n)) for n in random.integers(2, 16, 60)]
    pairs = [(text, text[::-1]) for text in texts]
    characters = ka.data.Characters.build(texts)
    preprocessor = ka.data.SequencePreprocessor(characters, characters)
    model = ka.models.seq2seq_transformer(len(characters), len(characters), **SIZE)
    options = {"max_tokens": 128, "edges": (8,)}
    train = ka.data.batches(pairs[:40], preprocessor, 16, shuffle=True, **options)
    return model, train, ka.data.batches(pairs[40:], preprocessor, 12, **options)


def labeler():
    random = np.random.default_rng(0)
    sentences = []
    for length in random.integers(1, 13, 45):
        words = random.choice(["a", "b", "cc", "dd"], size=length)
        sentences.append(ka.data.Sentence(tuple(words), tuple(word[0].upper() for word in words)))
    preprocessor = ka.data.TaggerPreprocessor.build(sentences, characters=False)
    model = ka.models.sequence_labeler(len(preprocessor.tokenizer), 4, **SIZE)
    options = {"edges": (6,)}
    train = ka.data.batches(sentences[:30], preprocessor, 8, shuffle=True, **options)
    return model, train, ka.data.batches(sentences[30:], preprocessor, 8, **options)


def vision():
    random = np.random.default_rng(0)
    pixels, labels = random.integers(0, 256, (45, 8, 8, 1)).astype("uint8"), np.arange(45) % 3
    model = ka.models.vision_transformer((8, 8), 3, patch_size=4, num_channels=1, **SIZE)
    # An augmentation is drawn for a whole batch, by every process.
    augment = ka.data.image_augmentation(shift=0.2)
    split = ka.data.ImageSplit(pixels, labels)
    train = ka.data.batches(split[:29], None, 8, shuffle=True, augment=augment)
    return model, train, ka.data.batches(split[29:], None, 8)


def language():
    tokens = np.random.default_rng(0).integers(1, 40, 400)
    model = ka.models.causal_language_model(40, **SIZE)
    train = ka.data.batches(ka.data.TextWindows(tokens[:300], 8), None, 16)
    return model, train, ka.data.batches(ka.data.TextWindows(tokens[300:], 8), None, 8)


CASES = {make.__name__: make for make in (translator, labeler, vision, language)}


def compile_model(model):
    optimizer = ka.training.AdamW(0.01, weight_decay=0.01, global_clipnorm=1.0)
    model.compile(optimizer, ka.training.MaskedSparseCategoricalCrossentropy())


def train(name, epochs=EPOCHS, callbacks=()):
    """Return the losses of a case in training and on the development part, and predictions."""
    keras.utils.set_random_seed(0)
    model, batches, dev = CASES[name]()
    compile_model(model)
    history = model.fit(
        batches,
        validation_data=dev,
        epochs=epochs,
        callbacks=[*callbacks],
        verbose=0,
        shuffle=False,
    )
    # Check that batches of one length are predicted whole, and that `take` reads a set whole.
    parts = [dev] if name in ("vision", "language") else [dev.skip(k).take(1) for k in range(2)]
    predicted = [model.predict(part, verbose=0) for part in parts]
    return {
        "epochs": history.epoch,
        "losses": [*history.history["loss"], *history.history["val_loss"]],
        "evaluated": float(model.evaluate(dev, verbose=0)),
        "predicted": [array.sum(axis=(0, *range(2, array.ndim))).tolist() for array in predicted],
        "rows": [len(array) for array in predicted],
    }


class Die(keras.callbacks.Callback):
    """Ends this process as a machine does that fails, when an epoch begins."""

    def on_epoch_begin(self, epoch, logs=None):
        if epoch == 1:
            os.kill(os.getpid(), signal.SIGKILL)


def train_with_backup(folder, *callbacks):
    backup = ka.distribution.OrbaxBackup(f"{folder}/backup", save_on_background=False)
    return train("language", callbacks=[backup, *callbacks])


def run_stage(stage, folder, rank):
    """Return the results that the test compares, {case: result of `train`}."""
    if stage == "alone":
        return {name: train(name) for name in CASES}
    if stage == "loaded":
        model = ka.distribution.load_orbax(f"{folder}/backup")
        _, _, dev = language()
        results = {"evaluated": float(model.evaluate(dev, verbose=0))}
        if keras.backend.backend() == "tensorflow":
            report = ka.export.to_litert(model, f"{folder}/model.tflite")
            results["parity"] = max(parity.max_abs_error for parity in report.parity)
        else:
            model.save(f"{folder}/model.keras")
        return results
    if stage == "together":
        results = {}
        for name, (mesh, fully_sharded) in LAYOUTS.items():
            print(name, file=sys.stderr, flush=True)
            with ka.distribution.RoleParallel(mesh, fully_sharded=fully_sharded).scope():
                results[name] = train(name)
        return results
    mesh, fully_sharded = LAYOUTS["language"]
    with ka.distribution.RoleParallel(mesh, fully_sharded=fully_sharded).scope():
        return train_with_backup(folder, *([Die()] if stage == "killed" and rank == 1 else []))


if __name__ == "__main__":
    stage, folder, *place = sys.argv[1:]
    rank = int(place[0]) if place else 0
    if place:
        keras.distribution.initialize(f"127.0.0.1:{place[1]}", PROCESSES, rank)
        assert len(keras.distribution.list_devices()) == PROCESSES * DEVICES
    print("found", json.dumps(run_stage(stage, folder, rank)))
