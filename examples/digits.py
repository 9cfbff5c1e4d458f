"""Classify handwritten digits with a vision transformer that is built layer by layer.

    python examples/digits.py [--epochs 30]

Needs scikit-learn, which contains the dataset: 1,797 images of 8 by 8 pixels. Writes a LiteRT file
and an image of the attention to saved_models/digits-by-hand/.
"""

import argparse
import pathlib

import keras
import numpy as np
from sklearn import datasets, model_selection

import keras_attention as ka


def build():
    """Build the model of Dosovitskiy et al. (2021), figure 1, with cosine scores and SwiGLU."""
    images = keras.Input((8, 8, 1), name="images")
    x = ka.blocks.PatchEmbedding(48, patch_size=2, num_prefix_tokens=1, position="learned")(images)
    for i in range(3):
        x = ka.blocks.EncoderBlock(
            attention=ka.attention.MultiHeadAttention(4, 12, score="cosine", name="attention"),
            feed_forward=ka.blocks.FeedForward(96, activation="swiglu", dropout=0.1),
            dropout=0.1,
            name=f"block_{i}",
        )(x)
    x = keras.layers.LayerNormalization()(x)
    x = ka.blocks.Pooling("cls")(x)
    return keras.Model(images, keras.layers.Dense(10, name="logits")(x))


def main(epochs, output):
    digits = datasets.load_digits()
    pixels = (digits.images[..., None] / 16).astype("float32")
    train, test, train_labels, test_labels = model_selection.train_test_split(
        pixels, digits.target, test_size=0.2, stratify=digits.target, random_state=0
    )

    model = build()
    model.compile(
        keras.optimizers.AdamW(2e-3, weight_decay=0.01),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    model.fit(train, train_labels, batch_size=64, epochs=epochs, verbose=2)
    print("test accuracy", model.evaluate(test, test_labels, verbose=0)[1])

    output.mkdir(parents=True, exist_ok=True)
    print(ka.export.to_litert(model, output / "model.tflite", quantization="int8_weights"))

    with ka.visualization.record_attention(model) as maps:
        model(test[:1])
    ka.visualization.attention_map(
        np.asarray(maps["block_2/attention"]), image=test[0], path=output / "attention.png"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument(
        "--output", type=pathlib.Path, default=pathlib.Path("saved_models/digits-by-hand")
    )
    arguments = parser.parse_args()
    main(arguments.epochs, arguments.output)
