"""AN4: word error rate on the official test split of Carnegie Mellon's census data.

    python benchmarks/an4.py FOLDER [--minutes 30]

FOLDER is `an4` as CMU Sphinx distributes it, with `etc/an4_train.fileids`, transcripts, and MFCCs
in `feat/`. A Conformer with CTC over characters is trained on 948 utterances, at random speeds in
every epoch. A running average of its weights is tested on the 130 other utterances, with greedy and
with prefix beam search, without a language model. No choices are made on the test split. Minutes
are CPU minutes divided by the number of cores.
"""

import argparse
import pathlib

import keras
import numpy as np
from connected_digits import FallingRate, count_seconds
from training_runs import score_files

import keras_attention as ka
from keras_attention.data.columns import pad_rows

BATCH = 24
SPEEDS = 0.85, 1.2  # speeds of an utterance
AUGMENT = dict(num_time_masks=2, time_mask_size=20, time_mask_ratio=0.1, frequency_mask_size=6)


def stretch(features, factor):
    """Change the speed of features (T, F) by `factor`, with linear interpolation."""
    positions = np.arange(0, len(features) - 1, factor)
    below = positions.astype(int)
    share = (positions - below)[:, None].astype("float32")
    return (1 - share) * features[below] + share * features[below + 1]


def make_batches(recordings, preprocessor, seed):
    """Return a `tf.data.Dataset` of batches of similar lengths, with new speeds in every epoch."""
    import tensorflow as tf

    draw = np.random.default_rng(seed)
    lengths = np.array([len(recording.sound) for recording in recordings])
    labels = [preprocessor.encode(recording.text) for recording in recordings]

    count = -(-len(recordings) // BATCH)

    def produce():
        order = np.argsort(lengths * draw.uniform(0.8, 1.25, len(lengths)))
        for k in draw.permutation(count):
            rows = order[k * BATCH : (k + 1) * BATCH]
            factors = draw.uniform(*SPEEDS, len(rows))
            sounds = [stretch(recordings[i].sound, f) for i, f in zip(rows, factors, strict=True)]
            yield preprocessor(sounds), pad_rows([labels[i] for i in rows])

    features = tf.TensorSpec((None, None, *preprocessor.sound_shape), "float32")
    inputs = {preprocessor.input_name: features, "lengths": tf.TensorSpec((None,), "int32")}
    signature = inputs, tf.TensorSpec((None, None), "int32")
    batches = tf.data.Dataset.from_generator(produce, output_signature=signature)
    return batches.apply(tf.data.experimental.assert_cardinality(count)).prefetch(2)


def search(model, preprocessor, recordings):
    """Compute the word error rate of prefix beam search."""
    transcripts = []
    for recording in recordings:
        (logits,) = np.asarray(model(preprocessor([recording.sound])))
        ((labels, _),) = ka.generation.search_ctc_prefixes(logits)
        transcripts.append(preprocessor.decode(labels))
    return ka.training.compute_word_error_rate([one.text for one in recordings], transcripts)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--hidden-dim", type=int, default=128)
    parser.add_argument("--num-layers", type=int, default=4)
    parser.add_argument("--dropout", type=float, default=0.15)
    parser.add_argument("--subsampling-filters", type=int, default=32)
    parser.add_argument(
        "--held-out", type=int, default=0, help="training utterances to test on instead of test"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--files", action="store_true", help="score the LiteRT files, too")
    options = parser.parse_args()
    keras.utils.set_random_seed(options.seed)
    lists = {part: options.folder / "etc" / f"an4_{part}.fileids" for part in ("train", "test")}
    data = ka.data.from_recordings(**lists)
    train, test = [*data.train, *data.dev], data.test
    if options.held_out:
        names = sorted({recording.speaker for recording in train})[:: 74 // options.held_out]
        test = [recording for recording in train if recording.speaker in names]
        train = [recording for recording in train if recording.speaker not in names]
    texts = [recording.text for recording in train]
    preprocessor = ka.data.SpeechPreprocessor.build(texts, num_features=39)
    model = ka.models.speech_recognizer(
        preprocessor.vocabulary_size,
        embedding=ka.models.SpeechEmbedding(
            num_mel_bins=39,
            filters=options.subsampling_filters,
            spec_augment=dict(AUGMENT, seed=options.seed),
        ),
        num_layers=options.num_layers,
        num_heads=4,
        hidden_dim=options.hidden_dim,
        intermediate_dim=4 * options.hidden_dim,
        kernel_size=15,
        dropout=options.dropout,
    )
    print(
        f"{len(train)} and {len(test)} utterances, {model.count_params():,} parameters", flush=True
    )
    average = dict(use_ema=True, ema_momentum=0.99)  # `fit` sets the weights to it at the end
    optimizer = keras.optimizers.AdamW(2e-3, weight_decay=0.01, clipnorm=5.0, **average)
    model.compile(optimizer, ka.training.MaskedCTC(), jit_compile=False)
    batches = make_batches(train, preprocessor, options.seed)
    started = count_seconds()
    model.fit(batches, epochs=1000, callbacks=[FallingRate(60 * options.minutes)], verbose=2)
    print(f"trained for {(count_seconds() - started) / 60:.1f} minutes", flush=True)
    task = ka.tasks.SpeechRecognizer(model, preprocessor)
    print(f"greedy: {task.evaluate(test)}", flush=True)
    print(f"prefix beam search: WER {search(model, preprocessor, test):.4f}", flush=True)
    if options.files:
        print(score_files(task, lambda task: task.evaluate(test), train[:8]))


if __name__ == "__main__":
    main()
