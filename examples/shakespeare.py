"""Train a small character language model on Shakespeare, and generate text.

    python examples/shakespeare.py [--text input.txt] [--steps 600]

Without a file it reads tiny_shakespeare from the folder that KERAS_ATTENTION_DATA names. If this is
not set, it trains on a few lines of a sonnet, which are too few for a useful model. The following
command trains such a model, exports it and writes a model card:
`keras-attention train causal_language_model --dataset tiny_shakespeare`.
"""

import argparse
import os
import pathlib

import keras

import keras_attention as ka

PROMPT = "ROMEO:"
SONNET = """Shall I compare thee to a summer's day?
Thou art more lovely and more temperate:
Rough winds do shake the darling buds of May,
And summer's lease hath all too short a date;
Sometime too hot the eye of heaven shines,
And often is his gold complexion dimm'd;
And every fair from fair sometime declines,
By chance or nature's changing course untrimm'd;
"""


def read_text():
    folder = os.environ.get("KERAS_ATTENTION_DATA")
    path = pathlib.Path(folder or "") / "lm-tiny-shakespeare" / "input.txt"
    return path.read_text("utf-8") if folder and path.exists() else SONNET


def main(text, steps):
    size = int(0.9 * len(text))
    characters = ka.data.Characters.build([text[:size]])
    train, validation = characters.encode([text[:size], text[size:]])
    model = ka.models.causal_language_model(
        len(characters),
        num_layers=4,
        num_heads=4,
        hidden_dim=128,
        intermediate_dim=512,
        dropout=0.0,
        mask=ka.masks.Window(32),
    )
    schedule = ka.training.warmup_cosine(2e-3, warmup_steps=steps // 10, total_steps=steps)
    model.compile(
        keras.optimizers.AdamW(schedule, weight_decay=0.1, global_clipnorm=1.0),
        ka.training.MaskedSparseCategoricalCrossentropy(),
    )
    windows = ka.data.TextWindows(train, 64, steps=steps)
    batches = ka.data.batches(windows, batch_size=12)
    model.fit(batches, shuffle=False, verbose=2)
    loss = model.evaluate(ka.data.batches(ka.data.TextWindows(validation, 64)), verbose=0)
    print(f"validation loss {loss:.3f}")
    sampler = ka.generation.Sample(temperature=0.8, seed=0)
    written = ka.generation.generate(model, characters.encode([PROMPT]), 300, sampler)
    print(PROMPT + characters.decode(written)[0])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--text", type=pathlib.Path)
    parser.add_argument("--steps", type=int, default=600)
    arguments = parser.parse_args()
    main(arguments.text.read_text("utf-8") if arguments.text else read_text(), arguments.steps)
