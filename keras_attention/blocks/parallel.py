"""Attention and feed-forward side by side."""

import functools

import keras
from keras import ops

from keras_attention.blocks.encoder import EncoderBlock
from keras_attention.blocks.inner_layers import call_with_mask


@keras.saving.register_keras_serializable(package="keras_attention")
class ParallelBlock(EncoderBlock):
    """Attention and feed-forward see the same input and are added at once.

    With `norm="pre"`, `x + attention(n(x)) + feed_forward(n(x))` (Wang and Komatsuzaki, 2021,
    GPT-J; Chowdhery et al., 2022, PaLM, section 2; Dehghani et al., 2023, ViT-22B, section 2).
    There is one branch, f(x) = attention(x) + feed_forward(x), and one norm.

    Args:
        attention, feed_forward, norm, normalization, dropout, stochastic_depth, layer_scale,
            epsilon, remat: as in `EncoderBlock`.

    Call arguments and masking: as in `EncoderBlock`.

    ```python
    import numpy as np
    import keras_attention as ka

    block = ka.blocks.ParallelBlock(
        attention=ka.attention.MultiHeadAttention(num_heads=4, key_dim=8, mask="causal"),
        feed_forward=ka.blocks.FeedForward(64, activation="swiglu"),
    )
    assert block(np.ones((2, 5, 32))).shape == (2, 5, 32)
    ```
    """

    branches = {"_both_branch": "both"}

    def _add_branches(self, stream, attend, mask, training):
        feed = functools.partial(call_with_mask, self.feed_forward, mask=mask, training=training)

        def both(x):
            return ops.add(attend(x), feed(x))

        return self._add_branch(stream, both, self._both_branch, training)
