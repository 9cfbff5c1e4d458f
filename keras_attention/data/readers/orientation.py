"""EXIF orientation: rotates images, and boxes in them, upright."""

import io

TAG = 0x0112  # EXIF 2.3, section 4.6.4
MARKS = (b"Exif", b"eXIf", b"EXIF")  # in JPEG, PNG and WebP
SIDEWAYS = 5  # the first orientation that swaps height and width

# orientation: whether to reverse the rows of the stored image, to reverse its columns, then to swap
TURNS = {
    1: (False, False, False),
    2: (False, True, False),
    3: (True, True, False),
    4: (True, False, False),
    5: (False, False, True),
    6: (True, False, True),
    7: (True, True, True),
    8: (False, True, True),
}


def turn_picture(pixels, orientation):
    """Rotate and mirror the pixels of a stored image, (H, W, C), by its EXIF orientation."""
    reverse_rows, reverse_columns, swap = TURNS[orientation]
    pixels = pixels[::-1] if reverse_rows else pixels
    pixels = pixels[:, ::-1] if reverse_columns else pixels
    return pixels.swapaxes(0, 1) if swap else pixels


def find_orientation(content):
    """Read the EXIF orientation, 1 (upright, the default) to 8, from the bytes of an image file."""
    if not any(mark in content for mark in MARKS):
        return 1
    from PIL import Image

    try:
        with Image.open(io.BytesIO(content)) as picture:
            orientation = picture.getexif().get(TAG, 1)
    except (OSError, SyntaxError, ValueError):  # not an image that Pillow can read
        return 1
    return orientation if orientation in TURNS else 1


def turn_box(box, orientation, size):
    """Rotate a box upright, together with its image, by an EXIF orientation (1 to 8).

    The box and the result are (x0, y0, x1, y1) in pixels. `size` is the (height, width) of the
    image as stored.
    """
    reverse_rows, reverse_columns, swap = TURNS[orientation]
    (x0, y0, x1, y1), (height, width) = box, size
    if reverse_rows:
        y0, y1 = height - y1, height - y0
    if reverse_columns:
        x0, x1 = width - x1, width - x0
    return (y0, x0, y1, x1) if swap else (x0, y0, x1, y1)
