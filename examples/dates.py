"""Convert written dates to ISO 8601, with Bahdanau's network and with a Transformer.

    python examples/dates.py [--pairs 50000] [--epochs 2]

Both models read the characters of a date in one of 33 locales, which Babel generates from CLDR, and
generate the date in ISO 8601. A figure for each model shows its attention. Needs the extras nlp and
viz. To train the same models, export them and write model cards, run `keras-attention demo dates`.
"""

import argparse

import keras

import keras_attention as ka

SHOWN = "Montag, 4. März 2024"


def recurrent(sources, targets):
    """Build a bidirectional GRU, and a GRU decoder with attention (Bahdanau et al., 2015)."""
    return ka.models.seq2seq_recurrent(
        sources, targets, hidden_dim=128, embedding_dim=64, dropout=0.0
    )


def transformer(sources, targets):
    """Build a small Transformer (Vaswani et al., 2017)."""
    return ka.models.seq2seq_transformer(
        sources,
        targets,
        num_layers=2,
        num_heads=4,
        hidden_dim=128,
        intermediate_dim=256,
        dropout=0.0,
        norm="pre",
        tie_embeddings=False,
    )


MODELS = {"recurrent": recurrent, "Transformer": transformer}


def train(model, batches, epochs):
    steps = len(batches) * epochs
    model.compile(
        keras.optimizers.AdamW(
            ka.training.warmup_cosine(3e-3, steps // 10, steps),
            weight_decay=0.01,
            global_clipnorm=1.0,
        ),
        ka.training.MaskedSparseCategoricalCrossentropy(),
        jit_compile=False,
    )
    model.fit(batches, epochs=epochs, shuffle=False, verbose=2)


def write(model, characters, texts, **options):
    """Generate the token ids of the ISO dates for a list of written dates."""
    ends = {"start_token_id": characters.start_token_id, "end_token_id": characters.end_token_id}
    return ka.generation.generate(model, characters(texts), 12, **ends, **options)


def picture(model, characters, path):
    """Draw the attention of each generated character for one date."""
    result = write(model, characters, [SHOWN], return_attention=True)
    text = characters.texts(result.ids)[0]
    cross = [name for name in result.attention if "cross" in name] or list(result.attention)
    ka.visualization.attention_map(
        result.attention[cross[-1]],
        characters.target.pieces(result.ids[0][: len(text) + 1]),  # and END
        characters.source.pieces(characters([SHOWN])[0]),
        heads="mean",
        title=f"{SHOWN} is {text}",
        path=path,
    )


def main(pairs, epochs):
    keras.utils.set_random_seed(0)
    dates, test = ka.data.dates("train", pairs), ka.data.dates("test", 1000)
    sources = ka.data.Characters.build([date.written for date in dates])
    targets = ka.data.Characters.build([date.iso for date in dates])
    characters = ka.data.SequencePreprocessor(targets, sources)
    batches = ka.data.batches(dates, characters, 128, shuffle=True)
    for name, build in MODELS.items():
        model = build(len(sources), len(targets))
        train(model, batches, epochs)
        written = characters.texts(write(model, characters, [date.written for date in test]))
        right = sum(date.iso == text for date, text in zip(test, written, strict=True))
        print(f"{name}: {100 * right / len(test):.1f} % of {len(test)} days never seen are right")
        picture(model, characters, f"dates-{name.lower()}.png")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=50_000)
    parser.add_argument("--epochs", type=int, default=2)
    arguments = parser.parse_args()
    main(arguments.pairs, arguments.epochs)
