"""Connected digits: word error rates of speakers in the training data, and of an unseen speaker.

    python benchmarks/connected_digits.py [--minutes 10] [--unseen yweweler] [--tokens words]

A small Conformer is trained on waveforms of `ka.data.connected_digits`, which joins recordings of
TFDS's `spoken_digit`, and is tested on other recordings. It predicts characters, or words with
`--tokens words`. With `--chunk-size` it can stream. (8 encoder vectors are 320 ms.) Minutes are CPU
minutes divided by the number of cores.
"""

import argparse
import os
import time

import keras
from training_runs import score_files

import keras_attention as ka
from keras_attention.data.made_up.spoken_digits import TOP_DB, WORDS
from keras_attention.tasks.recipes.speech import CONFORMER, EMBEDDING

BATCH, RATE = 32, 2e-3


def count_seconds():
    """Return the CPU seconds of this process so far, divided by the number of cores."""
    return time.process_time() / os.cpu_count()


def seed_augmentation(seed):
    """Return the embedding settings of the recipe, with `seed` for all augmentations."""
    names = ("filter_augment", "spec_augment")
    return EMBEDDING | {name: EMBEDDING[name] | {"seed": seed} for name in names}


class FallingRate(keras.callbacks.Callback):
    """A schedule over CPU time: warm-up for a tenth of it, then linear decay to 0, then stop."""

    def __init__(self, seconds):
        super().__init__()
        self.seconds, self.started = seconds, None

    def on_train_batch_begin(self, batch, logs=None):
        self.started = self.started or count_seconds()
        gone = (count_seconds() - self.started) / self.seconds
        self.model.optimizer.learning_rate = RATE * max(1e-3, min(gone / 0.1, (1 - gone) / 0.9))
        self.model.stop_training = gone >= 1


def search_words(task, recordings):
    """Compute the word error rate of a search for the likeliest string of digits."""
    predicted = task.predict([recording.sound for recording in recordings], words=WORDS)
    texts = [recording.text for recording in recordings]
    return ka.training.compute_word_error_rate(texts, predicted)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--unseen", default="yweweler")
    parser.add_argument("--tokens", choices=("characters", "words"), default="characters")
    parser.add_argument("--chunk-size", type=int)
    parser.add_argument(
        "--speeds", type=float, nargs="+", default=[1.0], help="speeds of training recordings"
    )
    parser.add_argument(
        "--top-db",
        type=float,
        nargs=2,
        help="as in `ka.data.connected_digits`, default: 8 40, or none with --chunk-size",
    )
    parser.add_argument("--whole", action="store_true", help="without --top-db")
    parser.add_argument("--strings", type=int, default=4000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--data-dir")
    parser.add_argument("--files", action="store_true", help="score the LiteRT files, too")
    options = parser.parse_args()
    keras.utils.set_random_seed(options.seed)
    trims = options.top_db or TOP_DB
    if options.whole or (options.top_db is None and options.chunk_size is not None):
        trims = None
    common = dict(seed=options.seed, data_dir=options.data_dir)
    speakers = [name for name in ka.data.made_up.spoken_digits.SPEAKERS if name != options.unseen]
    seen = ka.data.connected_digits(
        options.strings, speakers=speakers, speeds=options.speeds, top_db=trims, **common
    )
    unseen = ka.data.connected_digits(0, 0, 500, speakers=[options.unseen], **common)
    preprocessor = ka.data.SpeechPreprocessor.build([" ".join(WORDS)], 8000, tokens=options.tokens)
    model = ka.models.speech_recognizer(
        preprocessor.vocabulary_size,
        chunk_size=options.chunk_size,
        **CONFORMER
        | dict(
            embedding=ka.models.SpeechEmbedding(
                input="waveform", sampling_rate=8000, **seed_augmentation(options.seed)
            )
        ),
    )
    print(f"{model.count_params():,} parameters", flush=True)
    optimizer = keras.optimizers.AdamW(RATE, weight_decay=0.01, clipnorm=5.0)
    model.compile(optimizer, ka.training.MaskedCTC(), jit_compile=False)
    batches = ka.data.batches(seen.train, preprocessor, BATCH, shuffle=True)
    started = count_seconds()
    model.fit(batches, epochs=1000, callbacks=[FallingRate(60 * options.minutes)], verbose=2)
    print(f"trained for {(count_seconds() - started) / 60:.1f} minutes")
    task = ka.tasks.SpeechRecognizer(model, preprocessor)
    for name, part in (("dev", seen.dev), ("test", seen.test), (options.unseen, unseen.test)):
        scores = task.evaluate(part)
        print(
            f"{name}: {len(part)} strings, WER {scores['word_error_rate']:.4f}, "
            f"CER {scores['character_error_rate']:.4f}; "
            f"WER of a search among digits {search_words(task, part):.4f}",
            flush=True,
        )
    if options.files:
        print(score_files(task, lambda task: task.evaluate(seen.test), seen.train[:8]))


if __name__ == "__main__":
    main()
