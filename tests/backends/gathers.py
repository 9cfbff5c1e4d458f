"""Arrays that a compiled training step gathers among devices. As a program it prints them.

No weight has the size of the batch or of its texts. So an array that a device gathers holds a
global batch if one of its axes is a multiple of `BATCH`, and pairs of tokens if two are of
`LENGTH`. Weights that are fully sharded are gathered, as they should be.
"""

import json
import re
import sys

import keras
import numpy as np

import keras_attention as ka
from tests.backends import sharded
from tests.stacks import embed_characters

BATCH, LENGTH = 56, 72
SEQUENCE = {
    "sequence 2x4": ({"data": 2, "sequence": 4}, False),
    "fully sharded, sequence 8": ({"sequence": 8}, True),
}
LAYOUTS = {**sharded.LAYOUTS, **SEQUENCE}


def additive():
    """Scores of every pair for every head, with weights for each head."""
    return ka.models.sequence_labeler(
        sharded.VOCABULARY, sharded.CLASSES, score="additive", **sharded.SIZE
    )


def shaw():
    """Vectors of distances in the values, too."""
    return ka.models.sequence_labeler(
        sharded.VOCABULARY, sharded.CLASSES, position="shaw", **sharded.SIZE
    )


def vision():
    return ka.models.vision_transformer(
        (24, 24), sharded.CLASSES, patch_size=4, num_channels=1, **sharded.SIZE
    )


def spelled():
    """Words with their characters."""
    return ka.models.sequence_labeler(
        sharded.VOCABULARY, sharded.CLASSES, embedding=embed_characters(20), **sharded.SIZE
    )


BUILDERS = {
    # of all but experts, whose slots all tokens share
    **{name: make for name, make in sharded.BUILDERS.items() if name != "experts"},
    "vision": vision,
    "additive": additive,
    "shaw": shaw,
    "spelled": spelled,
}


def draw(name):
    """Draw a batch of inputs and labels."""
    random = np.random.default_rng(0)
    if name == "vision":
        x = random.random((BATCH, 24, 24, 1), dtype="float32")
        return x, random.integers(0, sharded.CLASSES, BATCH)
    ids, targets = random.integers(1, sharded.VOCABULARY, (2, BATCH, LENGTH)).astype("int32")
    ids[:, LENGTH // 2 :] *= random.integers(0, 2, (BATCH, 1))
    if name == "classifier":
        return ids, random.integers(0, sharded.CLASSES, BATCH)
    if name == "masked":
        return {"token_ids": ids, "segment_ids": targets % 2}, targets
    if name == "spelled":
        characters = random.integers(1, 20, (BATCH, LENGTH, 5)).astype("int32")
        return {"token_ids": ids, "character_ids": characters}, targets % sharded.CLASSES
    if name in ("translator", "recurrent"):
        return {"source_ids": ids, "target_ids": targets}, targets
    return ids, targets % sharded.CLASSES


def list_layouts(name):
    """Recurrent layers go through a sequence step by step: it is not to be split."""
    names = [each for each in LAYOUTS if name != "recurrent" or "sequence" not in each]
    return {each: LAYOUTS[each] for each in names}


def compile_step(name, layout):
    """Return the text of the compiled training step of a model."""
    import jax

    model = BUILDERS[name]()
    loss = ka.training.MaskedSparseCategoricalCrossentropy()
    if name in ("classifier", "vision"):
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(0.01), loss)
    model.optimizer.build(model.trainable_variables)
    data = draw(name)
    state = tuple(
        [v.value for v in variables]
        for variables in (
            model.trainable_variables,
            model.non_trainable_variables,
            model.optimizer.variables,
            model.metrics_variables,
        )
    )
    data = keras.tree.map_structure(
        lambda x: jax.device_put(x, layout.get_data_layout(x.shape).backend_layout), data
    )
    return jax.jit(model.train_step).lower(state, data).compile().as_text()


def find_gathers(text):
    """Return the shapes of arrays that all devices gather or exchange."""
    pattern = r"= (\(.*?\)|\S+) (?:all-gather|all-to-all)(?:-start)?\("
    return [
        tuple(int(size) for size in sizes.split(",") if size)
        for shapes in re.findall(pattern, text)
        for sizes in re.findall(r"\w\[([\d,]*)\]", shapes)
    ]


def is_of_tokens(shape):
    """Return whether an array has a row for each text of a batch, or pairs of tokens."""
    pairs = sum(size % LENGTH == 0 for size in shape) > 1 or LENGTH**2 in shape
    return pairs or any(size % BATCH == 0 for size in shape)


def compare(name):
    """{layout: the shapes of all that is gathered, those of tokens}."""
    gathers = {}
    for layout_name, (mesh, fully_sharded) in list_layouts(name).items():
        layout = ka.distribution.RoleParallel(mesh, fully_sharded=fully_sharded)
        with layout.scope():
            gathered = find_gathers(compile_step(name, layout))
        gathers[layout_name] = gathered, [shape for shape in gathered if is_of_tokens(shape)]
    return gathers


if __name__ == "__main__":
    print(json.dumps(compare(sys.argv[1])))
