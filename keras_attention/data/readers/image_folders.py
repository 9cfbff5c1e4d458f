"""Pictures in a folder for each class: read, resized, and split where there is one folder only."""

import concurrent.futures
import contextlib
import functools
import io
import pathlib

import numpy as np

from keras_attention.core.checks import check_height_and_width
from keras_attention.data.preprocessors.resizing import Resizing
from keras_attention.data.problems import Problems
from keras_attention.data.readers.images import ImageSplit
from keras_attention.data.readers.orientation import TURNED, find_orientation
from keras_attention.data.splits import read_parts, split_by_class
from keras_attention.data.tokenizers.vocabulary import sort_labels
from keras_attention.files.extras import import_pillow
from keras_attention.files.io import read_bytes

SUFFIXES = (".png", ".jpg", ".jpeg", ".gif", ".bmp", ".webp")
OTHERS = (".avif", ".heic", ".heif", ".ico", ".jp2", ".jxl", ".psd", ".svg", ".tif", ".tiff")
FORMATS = ("PNG", "JPEG", "GIF", "BMP", "WEBP")  # as Pillow calls them
GREY = np.array([[0.2989], [0.5870], [0.1140]], "float32")  # weights of red, green and blue
COLOR_MODES = ("rgb", "grayscale")
PARTS = {"train", "training", "dev", "val", "valid", "validation", "test", "testing"}
MOST_BYTES = 8 << 30


def from_image_folder(
    train=None,
    dev=None,
    test=None,
    *,
    image_size=None,
    resizing=None,
    color_mode=None,
    labels=None,
    dev_fraction=0.1,
    test_fraction=0.0,
    seed=0,
    on_error="raise",
):
    """Images with a class each from folders, as torchvision and Keras want them, too.

    In a folder there is one for each class, whose name is the class, and in that its pictures,
    also in folders in it: PNG, JPEG, GIF (the first picture), BMP or WebP. Other files, and hidden
    ones, are left out.

    Args:
        train, dev, test: path of a folder of class folders, a list of such paths, or None.
            As with every reader, `dev_fraction` of train becomes dev where no dev is given, and
            nothing becomes test; here of each class.
        image_size: int or (height, width) in pixels, to which every picture is resized; None for
            the size of the pictures, where they all have one. Pictures are stretched, not cropped,
            as by `keras.utils.image_dataset_from_directory`; smaller ones are made by bilinear
            interpolation with antialiasing, as by torchvision and Pillow.
        resizing: `Resizing`, where pictures become this size in another way, such as that of a
            checkpoint: `task.preprocessor.resizing`. None for the way above.
        color_mode: `"rgb"`, `"grayscale"`, or None for grey where there is no colour in any picture
            and RGB otherwise. Transparency is dropped.
        labels: names of the classes in the order of their ids, such as those of a trained model:
            then a folder may lack some. None sorts those that are there; all folders have the same.
        dev_fraction, test_fraction: float, the shares of each class of train that become dev and
            test where these are not given; 0 for none.
        seed: int, which pictures those are.
        on_error: `"raise"` names all damaged pictures in one error, `"skip"` leaves them out with a
            warning that says how many.

    Returns:
        A `DataSet` of one `ImageSplit` a part, uint8, (height · width · channels) bytes for each
        picture. How they were split and resized is said in its `notes`.

    Files that are no pictures, or damaged, are all named in one ValueError. Pictures with an EXIF
    orientation are turned upright, as viewers and browsers show them.

    ```python
    import pathlib
    import tempfile
    import keras
    import numpy as np
    import keras_attention as ka

    folder = pathlib.Path(tempfile.mkdtemp())
    for name, value in (("day", 220), ("night", 30)):
        (folder / name).mkdir()
        for k in range(5):
            picture = np.full((12, 16, 3), value + k)
            keras.utils.save_img(folder / name / f"{k}.png", picture, scale=False)
    data = ka.data.from_image_folder(folder, image_size=8, test_fraction=0.2)
    assert repr(data) == "DataSet(ImageSplit: train=6, dev=2, test=2, 2 labels)"
    assert data.labels == ("day", "night") and set(data.train.labels) == {0, 1}
    ```
    """
    if image_size is not None:
        image_size = check_height_and_width("from_image_folder", "image_size", image_size)
    if resizing is not None and image_size is None:
        raise ValueError("resizing= says how pictures get an image_size=: give that, too.")
    if color_mode not in (*COLOR_MODES, None):
        raise ValueError(f"color_mode={color_mode!r}: expected one of {COLOR_MODES}, or None.")
    problems = Problems(on_error)
    list_pictures = functools.partial(_list_pictures, problems=problems)
    files_of_part = read_parts(list_pictures, {"train": train, "dev": dev, "test": test})
    names = _list_classes(files_of_part) if labels is None else list(labels)
    _check_classes(files_of_part, names, are_named=labels is not None)
    files = [file for part in files_of_part.values() for file in part]
    paths = [path for path, _ in files]
    pixels, read = _read_pixels(paths, image_size, color_mode, resizing, problems)
    problems.report()
    part_of = np.repeat(list(files_of_part), [len(part) for part in files_of_part.values()])[read]
    numbers = np.array([names.index(files[k][1]) for k in read], "int32")
    indices = {part: np.flatnonzero(part_of == part) for part in files_of_part}
    fractions = _choose_fractions(files_of_part, {"dev": dev_fraction, "test": test_fraction})
    if fractions:
        _check_counts(numbers[indices["train"]], names, 1 + len(fractions))
        indices |= split_by_class(numbers[indices["train"]], fractions, seed)
    parts = {name: (pixels[k], numbers[k]) for name, k in indices.items() if len(k)}
    notes = [*_describe_split(fractions, seed), *_describe_size(pixels, image_size, resizing)]
    return ImageSplit.collect(**parts, labels=names, dev_fraction=0, notes=notes)


def read_image(path, image_size=None, color_mode="rgb", resizing=None):
    """Return a picture file as float32 (H, W, C) from 0 to 1, resized as `from_image_folder` does.

    It is turned upright where it has an EXIF orientation.

    Args:
        path: of a PNG, JPEG, GIF (the first picture), BMP or WebP file.
        image_size: int or (height, width) in pixels, or None for the picture's own.
        color_mode: `"rgb"` or `"grayscale"`: 3 channels or 1.
        resizing: `Resizing`, how it gets the size; None for stretched, bilinear.

    Raises:
        ValueError: the file is no picture, or damaged.

    ```python
    import pathlib
    import tempfile
    import keras
    import numpy as np
    import keras_attention as ka

    path = pathlib.Path(tempfile.mkdtemp()) / "white.png"
    keras.utils.save_img(path, np.full((4, 6, 3), 255), scale=False)
    picture = ka.data.read_image(path, image_size=(2, 3), color_mode="grayscale")
    assert picture.shape == (2, 3, 1) and picture.min() > 0.99
    ```
    """
    if image_size is not None:
        image_size = check_height_and_width("read_image", "image_size", image_size)
    picture = decode_picture(read_bytes(path), path, color_mode)
    return picture if image_size is None else resize_picture(picture, image_size, resizing)


def decode_picture(content, name, color_mode="rgb"):
    """Return the bytes of a picture file as float32 (H, W, C) from 0 to 1, upright (EXIF).

    Args:
        name: what errors call it.
        color_mode: as in `read_image`.
    """
    pillow = import_pillow("read_image")
    try:
        with pillow.open(io.BytesIO(content), formats=FORMATS) as opened:
            picture = _read_rgb(opened)
    except Exception as error:  # of many kinds, for files that are damaged
        kinds = ", ".join(suffix[1:].upper() for suffix in SUFFIXES if suffix != ".jpeg")
        raise ValueError(
            f"{name} is no picture, or is damaged: expected {kinds}. Mend, convert or remove it."
        ) from error
    picture = picture.astype("float32") / np.float32(255)
    if color_mode == "grayscale":
        picture = picture @ GREY
    return np.clip(TURNED[find_orientation(content)](picture), 0.0, 1.0)


def _read_rgb(opened):
    """Return the first picture of an open file, uint8 (H, W, 3). Transparency is dropped."""
    if opened.mode.startswith("I"):  # grey, with 16 bits
        return np.repeat((np.asarray(opened)[:, :, None] >> 8).astype("uint8"), 3, axis=2)
    return np.asarray(opened.convert("RGB"))


def resize_picture(picture, image_size, resizing=None):
    """float32 (H, W, C) from 0 to 1 as one of `image_size`; None stretches it, bilinear."""
    picture = (resizing or Resizing()).apply(picture, image_size)
    return np.clip(picture, 0.0, 1.0)


def _list_pictures(folder, problems):
    """Return (path, name of the class) of every picture in a folder of class folders."""
    folder = pathlib.Path(folder)
    if not folder.is_dir():
        problem = "is a file" if folder.exists() else "is not there"
        raise ValueError(f"{folder} {problem}: expected a folder that has one for each class.")
    classes = [path for path in _list_visible(folder) if path.is_dir()]
    if not classes:
        direct = [path for path in _list_visible(folder) if _is_picture(path)]
        raise ValueError(
            f"{folder} has no class folder"
            + (f", but {len(direct)} pictures" if direct else "")
            + ": expected a folder in it for each class, with the pictures of the class."
        )
    if {path.name.lower() for path in classes} <= PARTS and all(
        any(path.is_dir() for path in _list_visible(folder)) for folder in classes
    ):
        parts = ", ".join(path.name for path in classes)
        raise ValueError(
            f"{folder} has the folders {parts}, which have the class folders: name each by its "
            f"part, such as train={str(classes[0])!r}."
        )
    pictures = {path: _list_class(path, problems) for path in classes}
    if empty := [path for path, files in pictures.items() if not files]:
        kinds = ", ".join(SUFFIXES)
        raise ValueError(f"{empty[0]} holds no picture ({kinds}): add some, or remove the folder.")
    return [(picture, path.name) for path, files in pictures.items() for picture in files]


def _list_class(folder, problems):
    """Return the pictures of one class, at any depth."""
    pictures = []
    for path in _list_visible(folder):
        if path.is_dir():
            pictures += _list_class(path, problems)
        elif _is_picture(path):
            pictures.append(path)
        elif path.suffix.lower() in OTHERS:
            with problems.note():
                raise ValueError(f"{path} is of a kind that is not read: convert it to PNG or JPEG")
    return pictures


def _list_visible(folder):
    return sorted(path for path in folder.iterdir() if not path.name.startswith("."))


def _is_picture(path):
    return path.suffix.lower() in SUFFIXES and path.is_file()


def _list_classes(files_of_part):
    return sort_labels(name for part in files_of_part.values() for _, name in part)


def _check_classes(files_of_part, names, are_named):
    """Refuses folders whose classes are not the expected ones.

    Args:
        are_named: bool, whether the caller named the classes: then a folder may lack some.
    """
    if len(names) < 2:
        raise ValueError(
            f"Found one class only, {names[0]}: expected a folder that has one for each of two "
            "classes or more."
        )
    for part, files in files_of_part.items():
        classes = _list_classes({part: files})
        if are_named and (unknown := [name for name in classes if name not in names]):
            raise ValueError(
                f"The folder for {part} has the class {unknown[0]!r}, which is not among the "
                f"labels: {', '.join(names)}."
            )
        if not are_named and files and classes != names:
            missing = [name for name in names if name not in classes]
            raise ValueError(
                f"The folder for {part} has no picture of the class {missing[0]!r}, which another "
                "one has: all folders must have the same classes. Rename or add folders, or name "
                "all classes with labels=[...]."
            )


def _read_pixels(paths, image_size, color_mode, resizing, problems):
    """Return (uint8 (n, H, W, C), n indices of the `paths` that could be read)."""
    mode = color_mode or "rgb"
    first, size = (paths[0], image_size) if image_size else _find_size(paths)
    shape = (len(paths), *size, 1 if mode == "grayscale" else 3)
    if np.prod(shape, dtype="int64") > MOST_BYTES:
        raise ValueError(
            f"{len(paths)} pictures of {size[0]}x{size[1]} pixels do not fit into memory: give a "
            "smaller image_size=, such as image_size=64."
        )
    pixels = np.empty(shape, "uint8")

    def load(index):
        picture = read_image(paths[index], image_size, mode, resizing)
        if picture.shape != shape[1:]:
            raise ValueError(
                f"{paths[index]} has {picture.shape[0]}x{picture.shape[1]} pixels (height x width) "
                f"and {first} has {size[0]}x{size[1]}: give image_size=, such as image_size=64, "
                "to which all are resized."
            )
        pixels[index] = np.rint(picture * 255)

    read = note_unreadable(load, range(len(paths)), problems)
    pixels = pixels if len(read) == len(paths) else pixels[read]
    red, *green_and_blue = np.moveaxis(pixels, -1, 0)
    grey = color_mode is None and all(np.array_equal(red, other) for other in green_and_blue)
    return (pixels[..., :1].copy() if grey else pixels), read


def _find_size(paths):
    """Return (path, (height, width)) of the first picture that can be read, or else no size."""
    for path in paths:
        with contextlib.suppress(ValueError):
            return path, read_image(path).shape[:2]
    return paths[0], (0, 0)


def keep_readable(examples, problems):
    """Decode the picture files of examples once, and note the damaged ones.

    Args:
        examples: list of tuples that have the path of a picture as `image`.
        problems: `Problems`.

    Returns:
        list of (example, EXIF orientation of its picture) of those whose picture can be read.
    """

    orientations, paths = {}, list(dict.fromkeys(example.image for example in examples))

    def check(path):
        content = read_bytes(path)
        decode_picture(content, path)
        orientations[path] = find_orientation(content)

    note_unreadable(check, paths, problems)
    return [(one, orientations[one.image]) for one in examples if one.image in orientations]


def note_unreadable(read, pictures, problems):
    """Read pictures in threads, and note those that cannot be read.

    Args:
        read: function of one of `pictures`.
        pictures: list.
        problems: `Problems`.

    Returns:
        list of the indices of the pictures that can be read.
    """
    indices = []
    with concurrent.futures.ThreadPoolExecutor() as pool:
        try:
            for k, done in enumerate([pool.submit(read, picture) for picture in pictures]):
                with problems.note():
                    done.result()
                    indices.append(k)
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return indices


def _choose_fractions(files_of_part, fractions):
    """Return the parts that come out of train, with their shares: {} where none is missing."""
    for name, fraction in fractions.items():
        if not 0 <= fraction < 1:
            raise ValueError(f"{name}_fraction={fraction}: expected a number from 0 to below 1.")
    if not files_of_part["train"]:
        return {}
    missing = [name for name in ("test", "dev") if not files_of_part[name]]
    fractions = {name: fractions[name] for name in missing if fractions[name]}
    if sum(fractions.values()) >= 1:
        raise ValueError(
            f"{' and '.join(f'{name}_fraction={f}' for name, f in fractions.items())} leave "
            "nothing to train on: choose smaller ones."
        )
    return fractions


def _check_counts(numbers, names, least):
    for number, name in enumerate(names):
        if 0 < (count := int(np.sum(numbers == number))) < least:
            raise ValueError(
                f"The class {name!r} has {count} pictures, too few to split into {least} parts: "
                "give more, or folders for dev and test."
            )


def _describe_split(fractions, seed):
    if not fractions:
        return
    words = {"test": "testing", "dev": "choosing the epoch"}
    shares = [f"{100 * share:g} % for {words[name]}" for name, share in fractions.items()]
    yield f"split by class with the seed {seed}: {', '.join(shares)}, the others for training"


def _describe_size(pixels, image_size, resizing):
    if image_size is not None:
        height, width = pixels.shape[1:3]
        way = "stretched where need be" if resizing is None else f"by {resizing}"
        yield f"pictures are resized to {height} x {width} pixels, {way}"
