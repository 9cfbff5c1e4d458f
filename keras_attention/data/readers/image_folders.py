"""Images in one folder for each class: read, resized, and split if there is only one folder."""

import concurrent.futures
import contextlib
import io
import pathlib

import numpy as np

from keras_attention.core.checks import check_height_and_width
from keras_attention.data.preprocessors.resizing import Resizing
from keras_attention.data.problems import Problems
from keras_attention.data.readers.images import ImageSplit
from keras_attention.data.readers.orientation import find_orientation, turn_picture
from keras_attention.data.splits import read_parts, split_by_class
from keras_attention.data.tokenizers.vocabulary import sort_labels
from keras_attention.files.extras import import_pillow
from keras_attention.files.io import read_bytes

SUFFIXES = (".png", ".jpg", ".jpeg", ".gif", ".bmp", ".webp")
OTHERS = (".avif", ".heic", ".heif", ".ico", ".jp2", ".jxl", ".psd", ".svg", ".tif", ".tiff")
FORMATS = ("PNG", "JPEG", "GIF", "BMP", "WEBP")  # Pillow's names
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
    """Read a `DataSet` of `ImageSplit` from folders with class folders, as in torchvision.

    The name of a class folder is the name of the class. It contains images at any depth: PNG, JPEG,
    GIF (the first frame), BMP or WebP. Hidden files and other formats are left out. Images are
    rotated upright by their EXIF orientation. One ValueError lists all damaged images. Splits are
    uint8, and `notes` states how images were split and resized.

    Args:
        train, dev, test: path of a folder with class folders, a list of paths, or None. If dev is
            None, `dev_fraction` of each class in train becomes dev.
        image_size: int or (height, width) in pixels, the size to resize every image to. None if all
            images have the same size. Images are stretched, as in
            `keras.utils.image_dataset_from_directory`, with bilinear interpolation and
            antialiasing, as in torchvision and Pillow.
        resizing: `Resizing`, another way to resize, such as a checkpoint's
            `task.preprocessor.resizing`. None stretches.
        color_mode: `"rgb"`, `"grayscale"`, or None for grayscale if no image has color, else RGB.
            Transparency is dropped.
        labels: the names of the classes in the order of their ids, such as the labels of a trained
            model. Folders may then lack some of the classes. None sorts the classes. All folders
            must then contain all classes.
        dev_fraction, test_fraction: float, the shares of each class in train that become dev and
            test if these are not given.
        seed: int, for the random choice of these images.
        on_error: `"raise"` lists all damaged images in one error, `"skip"` leaves them out and
            warns.

    ```python
    import pathlib
    import keras
    import numpy as np
    import keras_attention as ka

    for name, value in (("day", 220), ("night", 30)):
        pathlib.Path(name).mkdir()
        for k in range(5):
            picture = np.full((12, 16, 3), value + k)
            keras.utils.save_img(f"{name}/{k}.png", picture, scale=False)
    data = ka.data.from_image_folder(".", image_size=8, test_fraction=0.2)
    assert repr(data) == "DataSet(ImageSplit: train=6, dev=2, test=2, 2 labels)"
    assert data.labels == ("day", "night") and set(data.train.labels) == {0, 1}
    ```
    """
    if image_size is not None:
        image_size = check_height_and_width("from_image_folder", "image_size", image_size)
    if resizing is not None and image_size is None:
        raise ValueError("resizing= needs image_size=: give the size, too.")
    if color_mode not in (*COLOR_MODES, None):
        raise ValueError(f"color_mode={color_mode!r}: expected one of {COLOR_MODES}, or None.")
    problems = Problems(on_error)
    files_of_part = read_parts(_list_pictures, train, dev, test, problems=problems)
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
    notes = []
    if fractions:
        uses = {"test": "testing", "dev": "choosing the epoch"}
        shares = ", ".join(
            f"{100 * share:g} % for {uses[name]}" for name, share in fractions.items()
        )
        notes.append(f"split by class with the seed {seed}: {shares}, the others for training")
    if image_size is not None:
        way = "stretched where need be" if resizing is None else f"by {resizing}"
        size = f"{pixels.shape[1]} x {pixels.shape[2]}"
        notes.append(f"images are resized to {size} pixels, {way}")
    return ImageSplit.collect(**parts, labels=names, dev_fraction=0, notes=notes)


def read_image(path, image_size=None, color_mode="rgb", resizing=None):
    """Read an image file as float32 (height, width, channels) from 0 to 1, rotated upright.

    The EXIF orientation of the file says how to rotate the image. Raise a ValueError if the file is
    missing or damaged.

    Args:
        path: path of a PNG, JPEG, GIF (the first frame), BMP or WebP file.
        image_size: int or (height, width) in pixels to resize to, or None to keep the size.
        color_mode: `"rgb"` for 3 channels or `"grayscale"` for 1.
        resizing: `Resizing`. None stretches the image with bilinear interpolation.

    ```python
    import keras
    import numpy as np
    import keras_attention as ka

    keras.utils.save_img("white.png", np.full((4, 6, 3), 255), scale=False)
    picture = ka.data.read_image("white.png", image_size=(2, 3), color_mode="grayscale")
    assert picture.shape == (2, 3, 1) and picture.min() > 0.99
    ```
    """
    if image_size is not None:
        image_size = check_height_and_width("read_image", "image_size", image_size)
    picture = decode_picture(read_bytes(path), path, color_mode)
    return picture if image_size is None else resize_picture(picture, image_size, resizing)


def decode_picture(content, name, color_mode="rgb"):
    """Decode `content`, the bytes of an image file, to float32 (height, width, channels).

    Pixels are from 0 to 1, rotated upright by the EXIF orientation. `color_mode` is `"rgb"` or
    `"grayscale"`. `name` stands for the file in error messages.
    """
    pillow = import_pillow("read_image")
    try:
        with pillow.open(io.BytesIO(content), formats=FORMATS) as opened:
            if opened.mode.startswith("I"):  # grayscale with 16 bits
                picture = np.asarray(opened)[:, :, None].repeat(3, axis=2) >> 8
            else:
                picture = np.asarray(opened.convert("RGB"))
    except Exception as error:  # Pillow raises many kinds for damaged files
        kinds = ", ".join(suffix[1:].upper() for suffix in SUFFIXES if suffix != ".jpeg")
        raise ValueError(
            f"{name} is damaged or not an image: expected {kinds}. Mend, convert or remove it."
        ) from error
    picture = picture.astype("uint8").astype("float32") / np.float32(255)
    if color_mode == "grayscale":
        picture = picture @ GREY
    return np.clip(turn_picture(picture, find_orientation(content)), 0.0, 1.0)


def resize_picture(picture, image_size, resizing=None):
    """Resize `picture`, float32 (H, W, C) from 0 to 1, to `image_size`, (height, width).

    `resizing` is a `Resizing`, which says how to scale and crop. If it is None, the image is
    stretched with bilinear interpolation.
    """
    picture = (resizing or Resizing()).apply(picture, image_size)
    return np.clip(picture, 0.0, 1.0)


def _list_pictures(folder, problems):
    """Return a list of (path, class) of the images in a folder with class folders."""
    folder = pathlib.Path(folder)
    if not folder.is_dir():
        problem = "is a file" if folder.exists() else "is missing"
        raise ValueError(f"{folder} {problem}: expected a folder of class folders.")
    classes = [path for path in _list_visible(folder) if path.is_dir()]
    if not classes:
        direct = [path for path in _list_visible(folder) if _is_picture(path)]
        direct = f", but {len(direct)} images" if direct else ""
        raise ValueError(
            f"{folder} has no class folder{direct}: expected a folder for each class in it."
        )
    if {path.name.lower() for path in classes} <= PARTS and all(
        any(path.is_dir() for path in _list_visible(folder)) for folder in classes
    ):
        parts = ", ".join(path.name for path in classes)
        raise ValueError(
            f"{folder} has the folders {parts} with class folders in them: give each as a part, "
            f"such as train={str(classes[0])!r}."
        )
    pictures = {path: _list_class(path, problems) for path in classes}
    if empty := [path for path, files in pictures.items() if not files]:
        kinds = ", ".join(SUFFIXES)
        raise ValueError(f"{empty[0]} has no image ({kinds}): add some, or remove the folder.")
    return [(picture, path.name) for path, files in pictures.items() for picture in files]


def _list_class(folder, problems):
    """Return a list with the paths of the images in the folder of one class, at any depth."""
    pictures = []
    for path in _list_visible(folder):
        if path.is_dir():
            pictures += _list_class(path, problems)
        elif _is_picture(path):
            pictures.append(path)
        elif path.suffix.lower() in OTHERS:
            with problems.note():
                raise ValueError(f"{path} is of an unsupported kind: convert it to PNG or JPEG")
    return pictures


def _list_visible(folder):
    return sorted(path for path in folder.iterdir() if not path.name.startswith("."))


def _is_picture(path):
    return path.suffix.lower() in SUFFIXES and path.is_file()


def _list_classes(files_of_part):
    return sort_labels(name for part in files_of_part.values() for _, name in part)


def _check_classes(files_of_part, names, are_named):
    """Raise a ValueError if a split has unexpected classes.

    `files_of_part` is a dict from the split to a list of (path, class), and `names` are the
    expected classes. If the user did not name them (`are_named` is False), each split must have all
    of them.
    """
    if len(names) < 2:
        raise ValueError(
            f"Found one class, {names[0]}: expected a folder for each of two or more classes."
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
                f"The folder for {part} lacks the class {missing[0]!r}, which another one has. "
                "Rename or add folders, or name all classes with labels=[...]."
            )


def _read_pixels(paths, image_size, color_mode, resizing, problems):
    """Read and resize images: return uint8 (n, H, W, C), and the indices of the readable paths.

    Damaged images are noted in `problems`. The other arguments are as in `from_image_folder`.
    """
    mode = color_mode or "rgb"
    first, size = (paths[0], image_size) if image_size else _find_size(paths)
    shape = (len(paths), *size, 1 if mode == "grayscale" else 3)
    if np.prod(shape, dtype="int64") > MOST_BYTES:
        raise ValueError(
            f"{len(paths)} images do not fit into memory: give a smaller image_size=, such as 64."
        )
    pixels = np.empty(shape, "uint8")

    def load(index):
        picture = read_image(paths[index], image_size, mode, resizing)
        if picture.shape != shape[1:]:
            raise ValueError(
                f"{paths[index]} has {picture.shape[0]}x{picture.shape[1]} pixels (height x width) "
                f"and {first} has {size[0]}x{size[1]}: give a common size, such as image_size=64."
            )
        pixels[index] = np.rint(picture * 255)

    read = note_unreadable(load, range(len(paths)), problems)
    pixels = pixels if len(read) == len(paths) else pixels[read]
    red, *green_and_blue = np.moveaxis(pixels, -1, 0)
    grey = color_mode is None and all(np.array_equal(red, other) for other in green_and_blue)
    return (pixels[..., :1].copy() if grey else pixels), read


def _find_size(paths):
    """Return (path, (height, width)) of the first readable image, or a size of (0, 0)."""
    for path in paths:
        with contextlib.suppress(ValueError):
            return path, read_image(path).shape[:2]
    return paths[0], (0, 0)


def keep_readable(examples, problems):
    """Decode the image file of each example, and return [(example, EXIF orientation)].

    `examples` are tuples with a field `image`, a path. Examples with a damaged image are left out,
    and noted in `problems`.
    """

    orientations, paths = {}, list(dict.fromkeys(example.image for example in examples))

    def check(path):
        content = read_bytes(path)
        decode_picture(content, path)
        orientations[path] = find_orientation(content)

    note_unreadable(check, paths, problems)
    return [(one, orientations[one.image]) for one in examples if one.image in orientations]


def note_unreadable(read, pictures, problems):
    """Call `read` for each of `pictures` in threads, and note each ValueError in `problems`.

    Return the indices of the pictures without an error.
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
    """Choose which splits must be taken from train: a dict from the split to its share of train.

    `files_of_part` is a dict from each split to its files, and `fractions` a dict from `"dev"` and
    `"test"` to the share that each has if it has no files.
    """
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
            "no training part: choose smaller ones."
        )
    return fractions


def _check_counts(numbers, names, least):
    for number, name in enumerate(names):
        if 0 < (count := int(np.sum(numbers == number))) < least:
            raise ValueError(
                f"The class {name!r} has {count} images, too few for {least} parts: give more."
            )
