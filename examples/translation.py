"""Translate German to English, from scratch: subwords, Transformer, beam search, BLEU, LiteRT file.

    python examples/translation.py [--epochs 26] [--num-layers 3] [--output translation.tflite]

Reads Multi30k (29,000 image captions, Elliott et al., 2016) from the folder that
KERAS_ATTENTION_DATA names, or generates sentences if this is not set. Needs the extras nlp and
export. To train the same model, save checkpoints and write a model card, run `keras-attention train
seq2seq_transformer --languages de-en --train train --dev val --test test_2016_flickr --output DIR`.
"""

import argparse
import itertools
import os
import pathlib

import keras
import sacrebleu

import keras_attention as ka


def load():
    folder = pathlib.Path(os.environ.get("KERAS_ATTENTION_DATA", "")) / "mt-multi30k-de-en"
    if not (folder / "train.de.gz").exists():
        return make_pairs()
    files = {"train": "train", "dev": "val", "test": "test_2016_flickr"}
    return ka.data.from_pair_files(
        **{k: (folder / f"{name}.de.gz", folder / f"{name}.en.gz") for k, name in files.items()}
    )


def make_pairs():
    """Generate sentences such as "Ein Hund sieht die Katze." with their translations."""
    words = [
        [("Ein Hund", "A dog"), ("Eine Frau", "A woman"), ("Der Mann", "The man")],
        [("sieht", "sees"), ("malt", "paints"), ("sucht", "looks for"), ("hört", "hears")],
        [("die Katze", "the cat"), ("das Haus", "the house"), ("ein Boot", "a boat")],
        [("", ""), (" heute", " today"), (" im Park", " in the park"), (" nicht", " in vain")],
    ]
    pairs = [
        tuple(f"{subject[k]} {verb[k]} {noun[k]}{end[k]}." for k in (0, 1))
        for subject, verb, noun, end in itertools.product(*words)
    ]
    return ka.data.Pair.collect(train=pairs[::2] + pairs[1::4], test=pairs[3::4])


def main(pairs, epochs, output, num_layers):
    keras.utils.set_random_seed(0)
    print(pairs)
    texts = [text for pair in pairs.train for text in pair]
    subwords = ka.data.Subwords.build(texts, 4000 if len(texts) > 10_000 else 60)
    preprocessor = ka.data.SequencePreprocessor(subwords, subwords)
    model = ka.models.seq2seq_transformer(
        len(subwords),  # encoder, decoder and logits share one embedding table
        num_layers=num_layers,
        num_heads=4,
        hidden_dim=256,
        intermediate_dim=512,
        dropout=0.3,
        norm="pre",
    )
    options = dict(batch_size=256, max_tokens=4096)
    train = ka.data.batches(pairs.train, preprocessor, shuffle=True, **options)
    steps = len(train) * epochs
    model.compile(
        keras.optimizers.AdamW(
            ka.training.warmup_cosine(1e-3, steps // 10, steps),
            weight_decay=0.05,
            global_clipnorm=1.0,
            use_ema=True,
            ema_momentum=1 - 1 / len(train) if len(train) > 1 else 0.5,
        ),
        ka.training.MaskedSparseCategoricalCrossentropy(label_smoothing=0.1),
        metrics=[ka.training.MaskedPerplexity()],
        jit_compile=False,
    )
    dev = ka.data.batches(pairs.dev, preprocessor, **options)
    average = keras.callbacks.SwapEMAWeights()
    model.fit(
        train, validation_data=dev, epochs=epochs, callbacks=[average], shuffle=False, verbose=2
    )

    ends = {
        "start_token_id": preprocessor.start_token_id,
        "end_token_id": preprocessor.end_token_id,
    }
    written = []
    for k in range(0, len(pairs.test), 32):
        sources = preprocessor([pair.source for pair in pairs.test[k : k + 32]])
        ids = ka.generation.generate(model, sources, 64, ka.generation.Beam(5), **ends)
        written += preprocessor.texts(ids)
    references = [pair.target for pair in pairs.test]
    for pair, text in zip(pairs.test[:3], written, strict=False):
        print(f"{pair.source}  ->  {text}")
    print(f"BLEU {sacrebleu.corpus_bleu(written, [references]).score:.1f}")
    generate = ka.export.Generation("greedy", max_new_tokens=64, **ends)
    print(ka.export.to_litert(model, output, generate=generate))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=26)
    parser.add_argument("--output", type=pathlib.Path, default="translation.tflite")
    parser.add_argument("--num-layers", type=int, default=3)
    arguments = parser.parse_args()
    main(load(), arguments.epochs, arguments.output, arguments.num_layers)
