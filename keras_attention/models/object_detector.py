"""Object detection: a class and a box for each query, without proposals."""

import dataclasses
import math

import keras
from keras import ops

from keras_attention.blocks import BoxHead, ObjectQueries
from keras_attention.core import checks
from keras_attention.models.keywords import takes_keywords_of
from keras_attention.models.stack_keywords import DecoderKeywords
from keras_attention.models.transformer import TransformerDecoder
from keras_attention.models.vision_transformer import encode_image

# Carion et al. (2020), section 4: the Transformer of DETR, behind a backbone of stride 32.
SIZES = {
    "DETR": dict(
        queries=100,
        num_layers=6,
        num_decoder_layers=6,
        num_heads=8,
        hidden_dim=256,
        intermediate_dim=2048,
        dropout=0.1,
        activation="relu",
        norm="post",
        no_object=True,
        auxiliary=True,
    ),
}
PRIOR = 0.01  # of an object, where classes are judged one by one


class QueryStack(TransformerDecoder):
    """A stack of decoder blocks, in one model with an encoder that ends in a norm, too."""

    _final = "decoder_final"


class QueryDecoder(DecoderKeywords):
    """Keywords of a stack of decoder blocks whose queries all see one another."""

    def make_stack(self, name):
        cross_attention = self._attention(None, None)
        settings = self._list_settings(name)
        return QueryStack(**settings, cross_attention=cross_attention, causal=False)


@takes_keywords_of(
    encode_image,
    without=["owner", "each_layer", "pooling", "normalize_pooled", "num_registers"],
    num_layers=3,
    num_heads=4,
    hidden_dim=128,
    intermediate_dim=256,
)
def object_detector(
    image_size,
    num_classes,
    *,
    queries="grid",
    num_decoder_layers=3,
    no_object=False,
    auxiliary=False,
    one_to_many=False,
    name="object_detector",
    **encoder,
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
        queries: `"grid"`, or an int for so many learned queries, each with a learned point, which
            attend to one another and to the encoded image. In the paper the embedding of a query is
            added in every layer; here it begins the stream.
        num_decoder_layers: int, of learned queries.
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
        patch_size, stem_filters, stem_strides: cells are patches, after the convolutions of a stem
            if there is one; a stem of stride 16, with `patch_size=1`, learns fastest.
        name: str.
        encoder: keywords of `vision_transformer` and of `TransformerEncoder`, which document them;
            sizes, norms and dropout are those of the decoder, too. `position` and `mask` are those
            of the encoder. Published sizes: `ka.models.sizes("object_detector")`.

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
    stem = dict(stem_filters=(8, 8), patch_size=1)
    model = ka.models.object_detector((16, 24), 3, **stem, **size)
    found = model(np.ones((2, 16, 24, 3)))
    assert found["logits"].shape == (2, 24, 3) and found["boxes"].shape == (2, 24, 4)

    model = ka.models.object_detector(16, 3, queries=5, patch_size=4, no_object=True, **size)
    assert model(np.ones((2, 16, 16, 3)))["logits"].shape == (2, 5, 4)
    ```
    """
    num_classes = checks.check_whole_number("object_detector", "num_classes", num_classes)
    if queries != "grid":
        queries = _check_queries(queries)
    on_grid = queries == "grid"
    images, found = encode_image(
        image_size,
        pooling=None,
        owner="object_detector",
        each_layer=(auxiliary or one_to_many) and on_grid,
        **encoder,
    )
    points = count_cells(images.shape[1:3], encoder) if on_grid else queries
    if not on_grid:
        decoder = QueryDecoder(**_take_decoder_settings(encoder, num_decoder_layers))
        x = ObjectQueries(queries, decoder.hidden_dim, name="queries")(found)
        found = decoder(x, found, name="decoder", each_layer=auxiliary or one_to_many)
    every = found if auxiliary or one_to_many else [found]
    found = every if auxiliary else every[-1:]

    def make_heads(prefix=""):
        to_logits = keras.layers.Dense(
            num_classes + no_object,
            bias_initializer="zeros" if no_object else keras.initializers.Constant(_logit(PRIOR)),
            dtype="float32",
            name=f"{prefix}logits",
        )
        return to_logits, BoxHead(
            encoder["hidden_dim"], points, dtype="float32", name=f"{prefix}boxes"
        )

    to_logits, to_boxes = make_heads()
    logits, boxes = [to_logits(x) for x in found], [to_boxes(x) for x in found]
    outputs = {"logits": logits[-1], "boxes": boxes[-1]}
    if auxiliary and len(found) > 1:
        outputs["auxiliary_logits"] = ops.stack(logits[:-1], axis=1)
        outputs["auxiliary_boxes"] = ops.stack(boxes[:-1], axis=1)
    if one_to_many:
        names = "one_to_many_logits", "one_to_many_boxes"
        heads = make_heads("one_to_many_")
        before = every[-2:][0]  # the last layer, if it is not the only one, keeps one query of many
        outputs |= {name: head(before) for name, head in zip(names, heads, strict=True)}
    return keras.Model(images, outputs, name=name)


def _check_queries(queries):
    if isinstance(queries, str):
        raise ValueError(
            f"object_detector(queries={queries!r}): expected 'grid', or how many learned queries."
        )
    return checks.check_whole_number("object_detector", "queries", queries)


def count_cells(size, encoder):
    """(rows, columns) of the patches of an image of `size`, by the keywords of `encode_image`."""
    strides = encoder.get("stem_strides") or (2,) * len(encoder.get("stem_filters") or ())
    for stride in strides if encoder.get("stem_filters") else ():
        size = [math.ceil(side / stride) for side in size]
    patch = checks.check_height_and_width(
        "object_detector", "patch_size", encoder.get("patch_size", 16)
    )
    return tuple(side // part for side, part in zip(size, patch, strict=True))


def _take_decoder_settings(encoder, num_layers):
    """Keywords of the decoder, of those of `encode_image`: the same sizes, norms and dropout."""
    names = {field.name for field in dataclasses.fields(QueryDecoder)}
    left = {"position", "mask", "layer_masks", "layer_positions", "num_blocks", "max_length"}
    settings = {name: value for name, value in encoder.items() if name in names - left}
    return {**settings, "num_layers": num_layers}


def _logit(probability):
    return math.log(probability / (1.0 - probability))
