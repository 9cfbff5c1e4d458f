"""Functions that resize position embeddings, to load an image model for another image size."""

import numpy as np

from keras_attention.core.checks import check_height_and_width
from keras_attention.models.vision_transformer import WITH_CLASS_TOKEN
from keras_attention.pretrained.keras_hub import Preset
from keras_attention.pretrained.table_entries import Conversion, get_conversion

POSITIONS = "patches/positions/table"  # the weight's name in every image model


def check_image_size(image_size, builder, keywords, checkpoint):
    """Return the argument `image_size` of `load` as (height, width).

    A ValueError is raised if the model is not for images, or if a side is not a multiple of the
    patch size. `keywords` are the settings of the model, `builder` its function in `ka.models`, and
    `checkpoint` the `Checkpoint`, for error messages.
    """
    if "image_size" not in keywords:
        raise ValueError(f"image_size={image_size} is for images, but this is a {builder}.")
    if isinstance(checkpoint, Preset):
        raise ValueError(
            f"image_size={image_size}: {checkpoint.folder} is a preset of KerasHub, whose models "
            f"have a fixed image size: expected {keywords['image_size']}, or None."
        )
    size = check_height_and_width("load", "image_size", image_size)
    patch = check_height_and_width("load", "patch_size", keywords["patch_size"])
    if any(side % step for side, step in zip(size, patch, strict=True)):
        fits = [max(round(side / step), 1) * step for side, step in zip(size, patch, strict=True)]
        raise ValueError(
            f"image_size={size}: {checkpoint.folder} cuts images into patches of {patch} pixels. "
            f"Give multiples of the patch size, such as {tuple(fits)}."
        )
    return size


def resize_positions(source, of_file, keywords, antialias):
    """Return a `Conversion` that loads the position embeddings for another image size.

    Args:
        source: name of a tensor or `Conversion` that loads them for the size of the checkpoint.
        of_file, keywords: dicts, the settings of the model with the image size of the checkpoint,
            and with the new image size.
        antialias: bool, whether to resize with antialiasing, as timm does. transformers does not.
    """
    conversion = get_conversion(source)
    grid, new_grid = find_grid(of_file), find_grid(keywords)
    prefix = of_file.get("num_registers", 0) + (of_file["pooling"] in WITH_CLASS_TOKEN)

    def resize(*arrays):
        return resize_table(conversion.convert(*arrays), grid, new_grid, prefix, antialias)

    return Conversion(conversion.names, resize)


def find_grid(keywords):
    """Return (rows, columns) of patches in an image, from the settings of a model.

    `keywords` are the settings, a dict with `image_size` and `patch_size`.
    """
    size, patch = (
        check_height_and_width("load", name, keywords[name])
        for name in ("image_size", "patch_size")
    )
    return tuple(side // step for side, step in zip(size, patch, strict=True))


def resize_table(table, grid, new_grid, prefix, antialias=False):
    """Return position embeddings (prefix + rows · columns, D) for another grid of patches.

    The vectors are resized like the pixels of an image (Dosovitskiy et al., 2021, section 3.2).
    transformers does the same in `interpolate_pos_encoding`, and timm in `resample_abs_pos_embed`,
    with antialiasing.

    Args:
        table: array (prefix + rows · columns, D), or with a leading axis of size 1.
        grid, new_grid: (rows, columns) of patches before and after.
        prefix: int, the number of leading vectors that do not belong to patches. They are kept.
        antialias: bool, whether to resize with antialiasing.
    """
    width = table.shape[-1]
    table = np.asarray(table, "float32").reshape(-1, width)
    front, patches = table[:prefix], table[prefix:].reshape(*grid, width)
    rows, columns = (
        interpolation_weights(old, new, antialias) for old, new in zip(grid, new_grid, strict=True)
    )
    patches = np.einsum("ri,cj,ijd->rcd", rows, columns, patches, optimize=True)
    return np.concatenate([front, patches.reshape(-1, width)]).astype("float32")


def interpolation_weights(old, new, antialias):
    """Return the matrix (new, old) that resizes an axis from `old` to `new` by cubic convolution.

    The weights (Keys, 1981) equal the weights of `torch.nn.functional.interpolate(mode="bicubic",
    align_corners=False)`. `antialias` is a bool, as in this function.
    """
    scale = old / new
    centers = (np.arange(new)[:, None] + 0.5) * scale - 0.5
    if antialias:  # as in Pillow, widen the kernel and cut it off at the edges
        weights = cubic_kernel((np.arange(old) - centers) / max(scale, 1.0), -0.5)
        return weights / weights.sum(axis=1, keepdims=True)
    near = np.floor(centers).astype(int) + np.arange(-1, 3)
    weights = np.zeros((new, old))
    inside = np.clip(near, 0, old - 1)  # repeat the edge
    np.add.at(weights, (np.arange(new)[:, None], inside), cubic_kernel(near - centers, -0.75))
    return weights


def cubic_kernel(distance, a):
    """Return the weight of a pixel at `distance`: 1 at 0, 0 beyond 2, with slope `a` at 1.

    It is the cubic kernel of Keys (1981).
    """
    x = np.abs(distance)
    inner = ((a + 2) * x - (a + 3)) * x**2 + 1
    outer = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return np.where(x <= 1, inner, np.where(x < 2, outer, 0.0))
