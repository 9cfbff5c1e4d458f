"""Label each comment with any number of 28 emotions (GoEmotions, Demszky et al., 2020).

    python examples/emotions.py [--train FILE --test FILE] [--from CHECKPOINT]

FILE is CSV, TSV or JSON lines with the columns `text` and `labels`. Without it, the comments come
from TensorFlow Datasets. To fine-tune a checkpoint, pass CHECKPOINT: a folder with Hugging Face's
files, or an id such as hf://sentence-transformers/all-MiniLM-L6-v2. The following command trains a
model from scratch, exports it and writes a model card:
`keras-attention train multi_label_classifier --dataset goemotions --output DIR`.
"""

import argparse
import random

import keras_attention as ka

COMMENTS = (
    "Thank you so much, that made my day!",
    "I can't believe they lied. Again.",
    "It rains.",
)
SIGNS = {"joy": "what a joy", "anger": "how dare you", "surprise": "oh wow", "fear": "i am afraid"}


def make_up(count, seed):
    """Generate comments that contain one phrase for each of their emotions, in random order."""
    draw, comments = random.Random(seed), []
    for _ in range(count):
        labels = draw.sample(sorted(SIGNS), draw.randint(0, 3))
        phrases = [SIGNS[label] for label in labels] + ["it is late", "so they say"]
        draw.shuffle(phrases)
        comments.append(ka.data.MultiLabelText(", ".join(phrases), tuple(labels)))
    return comments


def read(train, test, made_up):
    """Read comments from files or TFDS, or generate them if `made_up`."""
    if made_up:
        return ka.data.MultiLabelText.collect(make_up(800, 0), test=make_up(200, 1))
    if train is not None:
        return ka.data.from_multi_label_files(train=train, test=test)
    return ka.data.from_tfds("goemotions")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--train")
    parser.add_argument("--test")
    parser.add_argument("--from", dest="checkpoint")
    parser.add_argument("--made-up", action="store_true", help="make comments up")
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--attention", default="attention.png", help="figure to write")
    arguments = parser.parse_args()
    data = read(arguments.train, arguments.test, arguments.made_up)
    if arguments.checkpoint:
        task = ka.tasks.MultiLabelClassifier.from_preset(arguments.checkpoint)
    else:
        task = ka.tasks.MultiLabelClassifier.from_data(data)
    task.fit(data, epochs=arguments.epochs)
    for name, score in task.evaluate(data).items():
        print(f"{name}: {100 * score:.1f} %")
    for comment, labels in zip(COMMENTS, task.predict(COMMENTS), strict=True):
        emotions = ", ".join(f"{label} ({100 * share:.0f} %)" for label, share in labels)
        print(f"{comment} {emotions or 'no emotion'}")
    task.attention(COMMENTS[0], path=arguments.attention)
