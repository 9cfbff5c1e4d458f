"""Speech translation from spoken English digits to written German numbers.

    python benchmarks/speech_translation.py [--minutes 15] [--unseen yweweler]

"seven two" is *zweiundsiebzig*: the order of words changes. A small Conformer with a decoder and a
CTC loss over the English words is trained on waveforms of `ka.data.spoken_numbers`, which joins
recordings of TFDS's `spoken_digit`. It is tested on other recordings of the same speakers, and on
an unseen speaker. Minutes are CPU minutes divided by the number of cores.
"""

import argparse
import dataclasses
import json

import keras
from connected_digits import BATCH, RATE, FallingRate, count_seconds, seed_augmentation
from training_runs import score_files

import keras_attention as ka
from keras_attention.data.made_up.spoken_digits import TOP_DB

LONGEST = 128  # characters of a written number


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=15.0)
    parser.add_argument("--unseen", default="yweweler")
    parser.add_argument("--whole", action="store_true", help="without --top-db")
    parser.add_argument("--strings", type=int, default=16_000)
    parser.add_argument("--max-digits", type=int, default=7)
    parser.add_argument(
        "--top-db", type=float, nargs=2, default=TOP_DB, help="as in `ka.data.spoken_numbers`"
    )
    parser.add_argument("--tokens", choices=("characters", "subwords"), default="characters")
    parser.add_argument("--vocabulary-size", type=int, default=128, help="number of subwords")
    parser.add_argument("--ctc-weight", type=float, default=0.3)
    parser.add_argument("--label-smoothing", type=float, default=0.1)
    parser.add_argument("--tested", type=int, default=500, help="strings in each test")
    parser.add_argument(
        "--model", type=json.loads, default={}, help="keywords of the builder as JSON"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--data-dir")
    parser.add_argument("--files", action="store_true", help="score the LiteRT files, too")
    options = parser.parse_args()
    common = dict(seed=options.seed, data_dir=options.data_dir, max_digits=options.max_digits)
    trimmed = dict(top_db=None if options.whole else options.top_db) | common
    speakers = [name for name in ka.data.made_up.spoken_digits.SPEAKERS if name != options.unseen]
    seen = ka.data.spoken_numbers(options.strings, 0, options.tested, speakers=speakers, **trimmed)
    unseen = ka.data.spoken_numbers(0, 0, options.tested, speakers=[options.unseen], **common)
    task = ka.tasks.SpeechToText.from_data(
        seen,
        seed=options.seed,
        max_length=LONGEST,
        tokens=options.tokens,
        vocabulary_size=options.vocabulary_size,
        ctc_weight=options.ctc_weight,
        num_decoder_layers=2,
        **seed_augmentation(options.seed) | options.model,
    )
    print(f"{task.model.count_params():,} parameters", flush=True)
    optimizer = keras.optimizers.AdamW(RATE, weight_decay=0.01, clipnorm=5.0)
    loss = ka.training.CTCAttention(options.ctc_weight, options.label_smoothing)
    trained = ka.training.JointModel(task.model)
    trained.compile(optimizer, loss, [ka.training.DecoderAccuracy()], jit_compile=False)
    preprocessor = dataclasses.replace(task.preprocessor, ctc=True)
    batches = ka.data.batches(seen.train, preprocessor, BATCH, shuffle=True, seed=options.seed)
    started = count_seconds()
    trained.fit(batches, epochs=1000, callbacks=[FallingRate(60 * options.minutes)], verbose=2)
    print(f"trained for {(count_seconds() - started) / 60:.1f} minutes", flush=True)
    for name, part in (("test", seen.test), (options.unseen, unseen.test)):
        scores = task.evaluate(part)
        print(
            f"{name}: {len(part)} strings, exact {scores['exact_match']:.3f}, "
            f"chrF {scores['chrf']:.1f}",
            flush=True,
        )
    if options.files:
        # Compare files with the model on recordings, because outputs for noise are unstable.
        print(score_files(task, lambda task: task.evaluate(seen.test), seen.train[:8]))


if __name__ == "__main__":
    main()
