"""Object detection: a class and a box for each query, without proposals."""

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
    """Carion et al. (2020), section 4: their Transformer, behind a backbone of stride 32."""
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
PRIOR = 0.01  # of an object, where classes are judged one by one


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
    """DETR: an image encoder, and queries that find one object each (Carion et al., 2020).

    Train it with `ka.training.HungarianLoss`, which gives each object one query: so two boxes of
    one object are rare. Where none may remain, of two of a class that overlap keep the better.

    With `queries="grid"` there is no decoder: each cell of the encoder says which class is at its
    place, and where its box is, beside its own point, as the encoder's proposals of Deformable DETR
    (Zhu et al., 2021, section 4.2) do. That learns in minutes what learned queries need hours for.

    Args:
        image_size: int or (height, width) in pixels.
        num_classes: int.
        patch_size: int or (height, width). Cells are patches, after the convolutions of a stem if
            the embedding has one: a stem of stride 16, with `patch_size=1`, learns fastest.
        num_channels, num_layers, ..., embedding, encoder: as in `vision_transformer`.
        queries: `"grid"`, or an int for so many learned queries, each with a learned point, which
            attend to one another and to the encoded image. In the paper the embedding of a query is
            added in every layer; here it begins the stream.
        num_decoder_layers: int, the layers of the decoder of learned queries.
        decoder: a `TransformerDecoder(causal=False)`, or any function of the queries and the
            encoded image, of learned queries. None makes one of the sizes that the builder has.
        no_object: bool, whether logits have one more class, the last, for no object, of which a
            softmax is taken as in the paper. Otherwise a sigmoid of each logit says whether an
            object of that class is there.
        auxiliary: bool, whether the model also gives what the same heads make of the layers before
            the last, so that these have losses of their own.
        one_to_many: bool, whether training has a second pair of heads, of which several queries
            find the same object (Jia et al., 2023, *DETRs with Hybrid Matching*; with queries on a
            grid, Wang et al., 2024, *YOLOv10*, section 3.1). One query for each object teaches few
            cells; with several the encoder learns sooner. These heads read the layer before the
            last, much as in Jia et al.'s hybrid layer scheme, so that the last is free to choose
            one query of several. Files that `ka.tasks.ObjectDetector` exports leave them out.
        name: str.

    Returns:
        A functional `keras.Model`. Input `"images"` float32 (B, height, width, num_channels), by
        convention from 0 to 1. Outputs, a dict of float32: `"logits"` (B, Q, num_classes), and one
        more with `no_object`; `"boxes"` (B, Q, 4), middle, width and height (cx, cy, w, h) as
        shares of the image's width and height. With `auxiliary` also `"auxiliary_logits"`
        (B, L - 1, Q, ...) and `"auxiliary_boxes"` (B, L - 1, Q, 4) of the other layers; with
        `one_to_many` also `"one_to_many_logits"` and `"one_to_many_boxes"`, shaped like these.

    Example:

    ```python
    import numpy as np
    import keras_attention as ka

    size = dict(num_layers=1, num_heads=2, hidden_dim=16, intermediate_dim=32)
    stem = ka.models.ImageEmbedding(stem_filters=(8, 8))
    model = ka.models.object_detector((16, 24), 3, patch_size=1, embedding=stem, **size)
    found = model(np.ones((2, 16, 24, 3)))
    assert found["logits"].shape == (2, 24, 3) and found["boxes"].shape == (2, 24, 4)

    model = ka.models.object_detector(16, 3, queries=5, patch_size=4, no_object=True, **size)
    assert model(np.ones((2, 16, 16, 3)))["logits"].shape == (2, 5, 4)
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
        before = layers[-2:][0]  # the last layer, if there are several, keeps one query of many
        found = _find_objects([before], *heads, prefix="one_to_many_")
        outputs |= {f"one_to_many_{key}": value for key, value in found.items()}
    return keras.Model(images, outputs, name=name)


def _find_objects(layers, num_classes, no_object, hidden_dim, points, prefix=""):
    """The outputs of one pair of heads: of the last layer, and of those before it."""
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
            f"object_detector(queries={queries!r}): expected 'grid', or how many learned queries."
        )
    return checks.check_whole_number("object_detector", "queries", queries)
