"""Tag parts of speech: from CoNLL-U files to a tagged sentence, with a model builder.

    python examples/part_of_speech.py [--train T.conllu --dev D.conllu] [--picture P.png]

Without files it reads English EWT from the folder that KERAS_ATTENTION_DATA names. If this is not
set, it reads a few sentences from the folder tests, which are too few for a useful model. To train
on all of EWT, export the model and write a model card, run `keras-attention train
sequence_labeler`.
"""

import argparse
import os
import pathlib

import keras
import numpy as np

import keras_attention as ka

TINY = pathlib.Path(__file__).parent.parent / "tests" / "data" / "readers" / "tiny.conllu"
EWT = "tfds-universal-dependencies/en_ewt-ud-{}.conllu.gz"


def find_files():
    folder = os.environ.get("KERAS_ATTENTION_DATA")
    if folder and (pathlib.Path(folder) / EWT.format("train")).exists():
        return tuple(pathlib.Path(folder) / EWT.format(part) for part in ("train", "dev"))
    return TINY, TINY


def main(train, dev, epochs, picture):
    tagged = ka.data.from_conllu(train, dev)
    words = ka.data.TaggerPreprocessor.build(tagged.train, tagged.labels)
    print(f"{len(tagged.train)} sentences, {len(words.tokenizer)} words, {len(words.labels)} tags")

    model = ka.models.sequence_labeler(
        len(words.tokenizer),
        len(words.labels),
        num_layers=2,
        num_heads=4,
        hidden_dim=96,
        intermediate_dim=192,
        position=["alibi", "relative_bias"],
        embedding=ka.models.TextEmbedding(
            token_dropout=0.1, characters=ka.models.Characters(len(words.characters))
        ),
    )

    model.compile(
        keras.optimizers.AdamW(2e-3),
        ka.training.MaskedSparseCategoricalCrossentropy(label_smoothing=0.1),
        metrics=[ka.training.MaskedSparseCategoricalAccuracy(name="accuracy")],
    )
    model.fit(
        ka.data.batches(tagged.train, words, shuffle=True),
        validation_data=ka.data.batches(tagged.dev, words),
        epochs=epochs,
        shuffle=False,
        verbose=2,
    )

    sentence = ka.data.split_words("The cat sat on the mat.")
    with ka.visualization.record_attention(model) as maps:
        logits = model(words([sentence]))
    tags = words.tags(logits, [sentence])[0]
    print(*(f"{token}/{tag}" for token, tag in zip(sentence, tags, strict=True)))

    if picture:
        weights = np.asarray(maps["block_1/attention"])
        ka.visualization.attention_map(weights, sentence, path=picture)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--train", type=pathlib.Path, default=find_files()[0])
    parser.add_argument("--dev", type=pathlib.Path, default=find_files()[1])
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--picture", type=pathlib.Path, help="figure of the attention")
    arguments = parser.parse_args()
    main(arguments.train, arguments.dev, arguments.epochs, arguments.picture)
