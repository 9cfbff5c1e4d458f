"""All Keras layers of the package in one place: `ka.layers.Learned` is `ka.positions.Learned`.

```python
import keras_attention as ka

assert ka.layers.MultiHeadAttention is ka.attention.MultiHeadAttention
```
"""

import keras

from keras_attention import (
    attention,
    blocks,
    masks,
    normalizers,
    positions,
    recurrent,
    scores,
    training,
)

_FOLDERS = (scores, normalizers, masks, positions, attention, blocks, recurrent, training)
_PUBLIC = {name: getattr(folder, name) for folder in _FOLDERS for name in folder.__all__}
_LAYERS = {
    name: value
    for name, value in _PUBLIC.items()
    if isinstance(value, type) and issubclass(value, keras.layers.Layer)
}

globals().update(_LAYERS)
__all__ = sorted(_LAYERS)
