"""`object_detector`: builds a model that finds the objects in an image, as classes and boxes."""

import math

import keras
from keras import ops

from keras_attention.blocks import BoxHead, ObjectQueries
from keras_attention.core import checks
from keras_attention.models.image_embedding import ImageEmbedding, split_position
from keras_attention.models.stack_choice import check_unused, name_blocks
from keras_attention.models.transformer import TransformerEncoder
from keras_attention.models.transformer_decoder import TransformerDecoder
from keras_attention.models.vision_transformer import image_input


def _detr():
    """Return a dict of arguments of `object_detector` for the Transformer of DETR.

    The sizes are from Carion et al. (2020, section 4).
    """
    stack = dict(dropout=0.1, activation="relu", norm="post")
    encoder = TransformerEncoder.of_size(6, 8, 256, 2048, **stack)
    decoder = TransformerDecoder.of_size(6, 8, 256, 2048, **stack, causal=False)
    return dict(
        queries=100,
        hidden_dim=256,
        dropout=0.1,
        encoder=encoder,
        decoder=decoder,
        no_object=True,
        auxiliary=True,
    )


SIZES = {"DETR": _detr}
PRIOR = 0.01  # the initial probability of an object, with a sigmoid for each class


def object_detector(
    image_size,
    num_classes,
    *,
    patch_size=16,
    num_channels=3,
    num_layers=3,
    num_heads=4,
    hidden_dim=128,
    intermediate_dim=256,
    dropout=0.0,
    score="scaled_dot",
    normalizer="softmax",
    mask=None,
    position="learned",
    embedding=None,
    encoder=None,
    queries="grid",
    num_decoder_layers=3,
    decoder=None,
    no_object=False,
    auxiliary=False,
    one_to_many=False,
    name="object_detector",
):
    """Build a DETR, which predicts the class and the box of objects (Carion et al., 2020).

    The model predicts one object, or none, from each of Q vectors, the queries. Train it with
    `ka.training.HungarianLoss`, which assigns one query to each object, so duplicate boxes are rare
    and need no suppression. With `queries="grid"` the model has no decoder. Each vector of the
    encoder is a query, which predicts a class and a box near its own grid point, like the encoder's
    proposals of Deformable DETR (Zhu et al., 2021, section 4.2). A model with a grid trains in
    minutes, a model with learned queries in hours.

    Args:
        image_size: int or (height, width) in pixels.
        num_classes: int, number of classes of objects.
        patch_size: int or (height, width) in pixels. If the embedding has a convolution stem, the
            size counts pixels of the stem's output. A stem of stride 16 with `patch_size=1` learns
            fastest.
        num_channels, num_layers, ..., embedding, encoder: sizes and parts of the encoder, explained
            in `vision_transformer`.
        queries: `"grid"`, or an int Q, the number of learned queries. In a decoder, learned queries
            attend to one another and to the encoded image. The model adds them only to the input of
            the decoder, while the paper adds them in every layer.
        num_decoder_layers: int, the number of decoder layers for learned queries.
        decoder: a `TransformerDecoder(causal=False)`, or any function of the queries and the
            encoded image. None makes a `TransformerDecoder` from the other arguments.
        no_object: bool, whether probabilities are a softmax over the classes and one more class,
            "no object", as in the paper. Otherwise each class has its own sigmoid.
        auxiliary: bool, whether the outputs also include the predictions that the same layers make
            from earlier layers of the stack, for auxiliary losses.
        one_to_many: bool, whether to add a second pair of output layers, for training only. The
            loss trains the pair with several queries for each object (Jia et al., 2023, *DETRs with
            Hybrid Matching*, and Wang et al., 2024, *YOLOv10*, section 3.1), so that more queries
            learn from each object. The pair reads the second-to-last layer, so the last layer can
            specialize in one query for each object. `ka.tasks.ObjectDetector` does not export it.
        name: str, the name of the model.

    Returns:
        A functional `keras.Model`. Input `"images"` float32 (B, height, width, num_channels), by
        convention from 0 to 1. Outputs, a dict of float32:

        - `"logits"` (B, Q, num_classes), or with `no_object` (B, Q, num_classes + 1).
        - `"boxes"` (B, Q, 4), the center, width and height (cx, cy, w, h), as fractions of the
          image's width and height.
        - with `auxiliary` also `"auxiliary_logits"` (B, L - 1, Q, ...) and `"auxiliary_boxes"`
          (B, L - 1, Q, 4), for all but the last of L layers.
        - with `one_to_many` also `"one_to_many_logits"` and `"one_to_many_boxes"`, shaped like
          `"logits"` and `"boxes"`.

    ```python
    import numpy as np
    import keras_attention as ka

    size = dict(num_layers=1, num_heads=2, hidden_dim=16, intermediate_dim=32)
    stem = ka.models.ImageEmbedding(stem_filters=(8, 8))
    model = ka.models.object_detector((16, 24), 3, patch_size=1, embedding=stem, **size)
    outputs = model(np.ones((2, 16, 24, 3)))
    assert outputs["logits"].shape == (2, 24, 3) and outputs["boxes"].shape == (2, 24, 4)
    ```
    """
    num_classes = checks.check_whole_number("object_detector", "num_classes", num_classes)
    embedding = ImageEmbedding() if embedding is None else embedding
    grid = embedding.count_patches(image_size, patch_size)
    added, position = split_position(
        position, grid, embedding.num_registers, hidden_dim / num_heads
    )
    sizes = dict(num_heads=num_heads, intermediate_dim=intermediate_dim)
    sizes |= dict(score=score, normalizer=normalizer)
    own = dict(num_layers=num_layers, mask=mask, position=position)
    check_unused(object_detector, "encoder", encoder, **sizes, **own)
    if encoder is None:
        encoder = TransformerEncoder.of_size(hidden_dim=hidden_dim, dropout=dropout, **sizes, **own)
    each_layer = auxiliary or one_to_many
    images = image_input(image_size, num_channels)
    x = embedding(images, patch_size, hidden_dim, added, dropout, embedding.num_registers)
    if queries == "grid":
        layers, points = encoder(x, each_layer=True) if each_layer else [encoder(x)], grid
    else:
        encoded, points = encoder(x), _check_queries(queries)
        if decoder is None:
            sizes |= dict(hidden_dim=hidden_dim, dropout=dropout)
            decoder = TransformerDecoder.of_size(num_decoder_layers, causal=False, **sizes)
        decoder = name_blocks(decoder, "decoder")
        x = ObjectQueries(queries, hidden_dim, name="queries")(encoded)
        layers = decoder(x, encoded, each_layer=True) if each_layer else [decoder(x, encoded)]
    heads = (num_classes, no_object, hidden_dim, points)
    outputs = _find_objects(layers if auxiliary else layers[-1:], *heads)
    if one_to_many:
        layers = layers[-2:-1] or layers
        second = _find_objects(layers, *heads, prefix="one_to_many_")
        outputs |= {f"one_to_many_{key}": value for key, value in second.items()}
    return keras.Model(images, outputs, name=name)


def _find_objects(layers, num_classes, no_object, hidden_dim, points, prefix=""):
    """Return a dict of the symbolic predictions that two new output layers make.

    The last of `layers` gives `"logits"` and `"boxes"`, and the rest give `"auxiliary_logits"` and
    `"auxiliary_boxes"`.

    Args:
        layers: list of the outputs (B, Q, D) of one or more layers.
        num_classes: int, number of classes of objects.
        no_object: bool, whether the logits have one more class, "no object".
        hidden_dim: int D, the width inside the `BoxHead`.
        points: (rows, columns) of a grid, or an int for that many learned points, relative to which
            the `BoxHead` predicts boxes.
        prefix: str, put before the names of the output layers.
    """
    bias = "zeros" if no_object else keras.initializers.Constant(math.log(PRIOR / (1.0 - PRIOR)))
    to_logits = keras.layers.Dense(
        num_classes + no_object, bias_initializer=bias, dtype="float32", name=f"{prefix}logits"
    )
    to_boxes = BoxHead(hidden_dim, points, dtype="float32", name=f"{prefix}boxes")
    logits, boxes = [to_logits(x) for x in layers], [to_boxes(x) for x in layers]
    outputs = {"logits": logits[-1], "boxes": boxes[-1]}
    if len(layers) > 1:
        outputs["auxiliary_logits"] = ops.stack(logits[:-1], axis=1)
        outputs["auxiliary_boxes"] = ops.stack(boxes[:-1], axis=1)
    return outputs


def _check_queries(queries):
    if isinstance(queries, str):
        raise ValueError(
            f"object_detector(queries={queries!r}): expected 'grid', or a number of queries."
        )
    return checks.check_whole_number("object_detector", "queries", queries)
