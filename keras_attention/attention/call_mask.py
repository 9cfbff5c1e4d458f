"""The masks that one call of an attention layer is given as tensors, as one."""

from keras import ops

from keras_attention import masks
from keras_attention.attention import axes, masking


def call_mask(
    query,
    attended=(1,),
    *,
    query_mask=None,
    value_mask=None,
    key_mask=None,
    attention_mask=None,
    segment_ids=None,
    value_segment_ids=None,
):
    """What all of them allow: bool, broadcastable to (B, N, T, S), or None for everything.

    They are the call arguments of `MultiHeadAttention` of the same names; query is (B, dims..., D),
    and `attended` the axes of it that are attended over.
    """
    if attention_mask is not None:
        attention_mask = ops.cast(ops.convert_to_tensor(attention_mask), "bool")
        attention_mask = axes.mask_to_sequences(attention_mask, query, attended)
    key_mask = None if key_mask is value_mask else key_mask
    padding = (
        mask if mask is None else axes.to_sequences(mask, attended, features=0)
        for mask in (query_mask, value_mask, key_mask)
    )
    return masks.all_of(
        attention_mask,
        masking.padding(*padding),
        masking.segments(segment_ids, value_segment_ids),
    )
