"""Positions of patches, resized on loading for images of another size than a file's."""

import numpy as np

from keras_attention.core.checks import check_height_and_width
from keras_attention.models.vision_transformer import WITH_CLASS_TOKEN
from keras_attention.pretrained.keras_hub import Preset
from keras_attention.pretrained.weights import Fold

POSITIONS = "patches/positions/table"  # the weight, in every model of images


def check_image_size(image_size, builder, keywords, checkpoint):
    """(height, width) that were asked for, if a checkpoint's patches tile them.

    Args:
        image_size: int or (height, width).
        builder, keywords: of the model in the file's own size.
        checkpoint: `Checkpoint`.
    """
    if "image_size" not in keywords:
        raise ValueError(f"image_size={image_size} is for images, and this is a {builder}.")
    if isinstance(checkpoint, Preset):
        raise ValueError(
            f"image_size={image_size}: {checkpoint.folder} is a preset of KerasHub, whose models "
            f"take images of one size: expected {keywords['image_size']}, or nothing."
        )
    size = check_height_and_width("load", "image_size", image_size)
    patch = check_height_and_width("load", "patch_size", keywords["patch_size"])
    if any(side % step for side, step in zip(size, patch, strict=True)):
        fits = [max(round(side / step), 1) * step for side, step in zip(size, patch, strict=True)]
        raise ValueError(
            f"image_size={size}: {checkpoint.folder} cuts images into patches of {patch} pixels. "
            f"Give multiples of them, such as {tuple(fits)}."
        )
    return size


def resize_positions(source, of_file, keywords, antialias):
    """Return the table's entry for positions of a new size, from that for the file's own.

    Args:
        source: name of a tensor, or a `Fold`: the positions as the file has them, row by row.
        of_file, keywords: dicts, what the builder is called with for the file's size and the new.
        antialias: bool, whether the original smooths what it makes smaller (timm does,
            transformers does not).
    """
    fold = source if isinstance(source, Fold) else Fold((source,), lambda x: x)
    grid, new_grid = find_grid(of_file), find_grid(keywords)
    prefix = of_file.get("num_registers", 0) + (of_file["pooling"] in WITH_CLASS_TOKEN)
    return Fold(
        fold.names,
        lambda *arrays: resize_table(fold.function(*arrays), grid, new_grid, prefix, antialias),
    )


def find_grid(keywords):
    """(rows, columns) of the patches of an image."""
    size, patch = (
        check_height_and_width("load", name, keywords[name])
        for name in ("image_size", "patch_size")
    )
    return tuple(side // step for side, step in zip(size, patch, strict=True))


def resize_table(table, grid, new_grid, prefix, antialias=False):
    """Return a table (prefix + rows · columns, D), float32, of another grid; the prefix stays.

    The vectors are resized as the pixels of an image (Dosovitskiy et al., 2021, section 3.2): so
    `interpolate_pos_encoding` of transformers' ViT, DeiT, DINOv2, CLIP and SigLIP does it at each
    call, and timm's `resample_abs_pos_embed`, with antialiasing, when a size is set.
    """
    width = table.shape[-1]
    table = np.asarray(table, "float32").reshape(-1, width)
    front, patches = table[:prefix], table[prefix:].reshape(*grid, width)
    rows, columns = (
        weigh_places(old, new, antialias) for old, new in zip(grid, new_grid, strict=True)
    )
    patches = np.einsum("ri,cj,ijd->rcd", rows, columns, patches, optimize=True)
    return np.concatenate([front, patches.reshape(-1, width)]).astype("float32")


def weigh_places(old, new, antialias):
    """(new, old): how much of each old place a new one holds, along one axis.

    Cubic convolution (Keys, 1981), as `torch.nn.functional.interpolate(mode="bicubic",
    align_corners=False)` has it: pixels are as wide as the scale says, and meet at the edges.
    """
    scale = old / new
    centers = (np.arange(new)[:, None] + 0.5) * scale - 0.5
    if antialias:  # as Pillow does it: the kernel gets wider, and ends with the image
        weights = cubic_kernel((np.arange(old) - centers) / max(scale, 1.0), -0.5)
        return weights / weights.sum(axis=1, keepdims=True)
    near = np.floor(centers).astype(int) + np.arange(-1, 3)
    weights = np.zeros((new, old))
    inside = np.clip(near, 0, old - 1)  # beyond the edge is what the edge has
    np.add.at(weights, (np.arange(new)[:, None], inside), cubic_kernel(near - centers, -0.75))
    return weights


def cubic_kernel(distance, a):
    """Keys's kernel, which falls from 1 at the distance 0 to 0 at 2; a is its slope at 1."""
    x = np.abs(distance)
    inner = ((a + 2) * x - (a + 3)) * x**2 + 1
    outer = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return np.where(x <= 1, inner, np.where(x < 2, outer, 0.0))
