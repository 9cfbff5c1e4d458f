"""The task `vision_transformer`: pictures and their classes."""

import pathlib

import numpy as np

from keras_attention import data, models, training, visualization
from keras_attention.cli import model_files
from keras_attention.cli.console import format_percent, say, show_table
from keras_attention.cli.fit import Job
from keras_attention.cli.model_files import by_name, check_sizes, score_batches, softmax
from keras_attention.data.fields import MOST_PIXELS
from keras_attention.export import inspection

TASK, KIND, HOLDS = "vision_transformer", data.Images, "images"
EXAMPLE = "picture.png"
OPTIONS = ("top", "invert")
SHOWN = 12  # test pictures in the gallery
MOST_CHANNELS = 1024


def make_job(images, recipe, source, about):
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
        dev=batch_for_scoring(images.dev, recipe.batch_size),
        test=images.test,
        metrics=[accuracy],
        metadata=metadata,
        sidecars=lambda folder: data.Labels(images.labels).save(folder / "labels.txt"),
        picture=lambda model, folder: draw_attention(model, folder, images, recipe),
        about=about,
    )


def count_examples(images):
    return {
        f"{part} images": len(getattr(images, part).labels) for part in ("train", "dev", "test")
    }


def batch_for_scoring(split, size=128):
    """Batches for scoring, or None when the split is empty."""
    return data.image_batches(split, size) if len(split.labels) else None


def accuracy():
    return training.MaskedSparseCategoricalAccuracy(name="accuracy")


def check_manifest(fields):
    """Refuses a manifest that lacks a field which this module reads."""
    fields.texts("labels")
    fields.wholes("image_size", 2, most=MOST_PIXELS)
    fields.whole("channels", most=MOST_CHANNELS)


def make_batches(folder, manifest, part, where):
    """Batches of `part`, and the metrics."""
    return batch_for_scoring(part), [accuracy]


def load_runner(path, manifest):
    """The file as a function: dict of arrays -> dict of arrays."""
    run = model_files.load_runner(path)
    _, *shape = next(iter(run.shapes.values()))
    height, width, channels = shape if len(shape) == 3 else (None, None, None)
    inspection.check_sizes(run.inspection, labels=len(manifest["labels"]))
    there = *manifest["image_size"], manifest["channels"]
    check_sizes(
        path,
        [
            ("manifest.json", "rows in an image", there[0], height),
            ("manifest.json", "columns in an image", there[1], width),
            ("manifest.json", "channels", there[2], channels),
        ],
    )
    return run


def compute_scores(run, folder, manifest, part, where):
    """{metric name: score} of `run` on a part of the data."""
    return score_batches(run, *make_batches(folder, manifest, part, where))


def print_predictions(run, folder, manifest, paths, options):
    """Prints the likeliest classes of every picture."""
    pictures = [read_picture(path, manifest, options["invert"]) for path in paths]
    for k, (path, picture) in enumerate(zip(paths, pictures, strict=True)):
        logits = next(iter(run(by_name(run, picture[None])).values()))
        shares = softmax(logits[0])
        best = np.argsort(-shares)[: options["top"] or 3]
        if k:
            say("")
        rows = [(manifest["labels"][i], format_percent(shares[i])) for i in best]
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


def draw_attention(model, folder, images, recipe):
    """Draws the attention on several test pictures, and on one of them head by head."""
    split = images.test if len(images.test.labels) else images.dev
    chosen = np.random.default_rng(recipe.seed).permutation(len(split.labels))[:SHOWN]
    pixels, labels = data.ImageSplit(split.pixels[chosen], split.labels[chosen]).arrays()
    with visualization.record_attention(model) as maps:
        predicted = np.argmax(model(pixels), axis=-1)
    path, weights = list(maps.items())[-1]  # the last block, or the pooling
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
