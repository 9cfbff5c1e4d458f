"""The task `vision_transformer`: pictures and their classes."""

import pathlib

import numpy as np

from keras_attention import data, models, training, visualization
from keras_attention.cli import runners
from keras_attention.cli.console import percent, say, show_table
from keras_attention.cli.job import Job
from keras_attention.cli.runners import by_name, softmax
from keras_attention.cli.scoring import score

TASK, KIND, HOLDS = "vision_transformer", data.Images, "images"
EXAMPLE = "picture.png"
OPTIONS = ("top", "invert")
SHOWN = 12  # test pictures in the gallery


def job(images, recipe, source, about):
    """The job for `images`, a `ka.data.Images`."""
    height, width, channels = (int(size) for size in images.image_shape)
    model = models.vision_transformer(
        (height, width), len(images.labels), num_channels=channels, **recipe.model
    )
    metadata = {
        "task": TASK,
        "dataset": source["dataset"],
        "label_column": source["label_column"],
        "labels": list(images.labels),
        "image_size": [height, width],
        "channels": channels,
        "pixels": "float32 from 0 to 1, row 0 on top",
    }
    augment = data.image_augmentation(seed=recipe.seed, **recipe.data) if recipe.data else None
    return Job(
        task=TASK,
        model=model,
        train=data.image_batches(
            images.train, recipe.batch_size, shuffle=True, seed=recipe.seed, augment=augment
        ),
        dev=batches(images.dev, recipe.batch_size),
        test=images.test,
        metrics=[accuracy],
        metadata=metadata,
        sidecars=lambda folder: data.Labels(images.labels).save(folder / "labels.txt"),
        picture=lambda model, folder: picture(model, folder, images, recipe),
        about=about,
    )


def counts(images):
    return {
        f"{part} images": len(getattr(images, part).labels) for part in ("train", "dev", "test")
    }


def batches(split, size=128):
    """Batches for scoring, or None when the split is empty."""
    return data.image_batches(split, size) if len(split.labels) else None


def accuracy():
    return training.MaskedSparseCategoricalAccuracy(name="accuracy")


def prepare(folder, manifest, part, where):
    """Batches of `part`, and the metrics."""
    return batches(part), [accuracy]


def load(path, manifest):
    """The file as a function: dict of arrays -> dict of arrays."""
    return runners.load(path)


def scores(run, folder, manifest, part, where):
    """{metric name: score} of `run` on a part of the data."""
    return score(run, *prepare(folder, manifest, part, where))


def show(run, folder, manifest, paths, options):
    """Prints the likeliest classes of every picture."""
    pictures = [read_picture(path, manifest, options["invert"]) for path in paths]
    for k, (path, picture) in enumerate(zip(paths, pictures, strict=True)):
        logits = next(iter(run(by_name(run, picture[None])).values()))
        shares = softmax(logits[0])
        best = np.argsort(-shares)[: options["top"] or 3]
        if k:
            say("")
        rows = [(manifest["labels"][i], percent(shares[i])) for i in best]
        show_table(("class", "probability"), rows, title=path)


def read_picture(path, manifest, invert):
    """A picture file as float32 (H, W, C) from 0 to 1, in the model's size."""
    import tensorflow as tf

    if not pathlib.Path(path).is_file():
        raise ValueError(f"There is no file {path}: this model wants picture files.")
    content = pathlib.Path(path).read_bytes()
    channels = manifest["channels"]
    try:
        picture = tf.io.decode_image(content, channels=3, expand_animations=False)
    except tf.errors.InvalidArgumentError as error:
        raise ValueError(f"{path} is no picture: expected PNG, JPEG, GIF or BMP.") from error
    picture = tf.image.convert_image_dtype(picture, "float32")
    if channels == 1:
        picture = tf.image.rgb_to_grayscale(picture)
    picture = tf.image.resize(picture, manifest["image_size"], antialias=True)
    picture = np.clip(picture.numpy(), 0.0, 1.0)
    return 1.0 - picture if invert else picture


def picture(model, folder, images, recipe):
    """Draws what the model looked at: several test pictures, and one of them head by head."""
    split = images.test if len(images.test.labels) else images.dev
    chosen = np.random.default_rng(recipe.seed).permutation(len(split.labels))[:SHOWN]
    pixels, labels = data.ImageSplit(split.pixels[chosen], split.labels[chosen]).arrays()
    with visualization.record_attention(model) as maps:
        predicted = np.argmax(model(pixels), axis=-1)
    path, weights = list(maps.items())[-1]  # the last block, or the pooling: what is read out
    titles = [_title(images.labels, *pair) for pair in zip(predicted, labels, strict=True)]
    query = None if recipe.model.get("pooling", "cls") in ("cls", "attention") else "mean"
    visualization.attention_gallery(
        pixels,
        weights,
        titles,
        query=query,
        title=f"Test pictures with predictions, and what {path} looked at",
        path=folder / "attention.png",
    )
    visualization.attention_map(
        weights[:1],
        image=pixels[0],
        query=query,
        title=f"{titles[0]}: {path}, head by head",
        path=folder / "attention_heads.png",
    )
    return ["attention.png", "attention_heads.png"]


def _title(names, predicted, label):
    if predicted == label:
        return names[predicted]
    return f"{names[predicted]} (is {names[label]})"
