"""Packed documents, several in one row: the input that tells them apart, and their positions."""

import keras

from keras_attention import masks
from keras_attention.core.integer_inputs import IntegerInputs


@keras.saving.register_keras_serializable(package="keras_attention")
class PositionsInDocuments(IntegerInputs, keras.layers.Layer):
    """Positions of tokens in their own documents: `keras_attention.masks.positions_in_segments`.

    Several short documents are packed in one row, as T5 packs its training data (Raffel et al.,
    2020, section 3.1.3). Builders with `packed=True` begin with this layer.

    Call arguments:
        document_ids: int (B, T), the number of each token's document, 1, 2, ...; 0 is padding.

    Returns int32 (B, T): 0, 1, 2, ... in each document, 0 for padding.

    ```python
    import numpy as np
    import keras_attention as ka

    positions = ka.blocks.PositionsInDocuments()(np.array([[1, 1, 1, 2, 2, 0]]))
    assert np.array_equal(positions, [[0, 1, 2, 0, 1, 0]])
    ```
    """

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True

    def call(self, document_ids):
        return masks.positions_in_segments(document_ids)

    def compute_output_spec(self, document_ids):
        return keras.KerasTensor(document_ids.shape, "int32")


def document_inputs(packed, name="document_ids"):
    """The input that `packed=True` adds to a model, and the call arguments of blocks made of it.

    Returns:
        Two dicts, both empty if not `packed`: `{name: input}`, and the call arguments
        `segment_ids` and `positions` of a block.
    """
    if not packed:
        return {}, {}
    documents = keras.Input((None,), dtype="int32", name=name)
    positions = PositionsInDocuments(name=name.replace("ids", "positions"))(documents)
    return {name: documents}, {"segment_ids": documents, "positions": positions}


def name_inputs(tokens, **others):
    """The inputs of a model: the tokens alone, or a dict of all by their names."""
    return {tokens.name: tokens, **others} if others else tokens
