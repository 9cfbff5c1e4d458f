"""Fine-tuning with LoRA, with frozen layers, and with lower learning rates in lower layers."""

import re
import weakref

import keras
from keras import ops

from keras_attention.attention.projection import ProjectionOwner
from keras_attention.blocks import Scan
from keras_attention.core import keras_internals
from keras_attention.core.checks import check_whole_number
from keras_attention.core.part import OwnArguments
from keras_attention.training.adamw import AdamW

TARGETS = ("query", "value")  # Hu et al. (2021), section 4.2
_BLOCK = re.compile(r"((en|de)coder_)?block_(\d+)")
_FROZEN = weakref.WeakKeyDictionary()  # model -> layers and variables that `enable_lora` froze


def enable_lora(model, rank, targets=TARGETS, *, lora_alpha=None):
    """Freeze a model, and add trainable low-rank matrices to its projections (Hu et al., 2021).

    Use it to fine-tune a large model in little memory. Only the low-rank matrices and the layers
    after the last block (the head) are trained. A kernel of shape (D, N, H) gets the update (D, N,
    rank) · (rank, H), as in `keras.layers.EinsumDense`. `BatchNormalization` keeps its moving
    statistics and normalizes with them. Layers that were already frozen get no low-rank matrices,
    and stay frozen after `merge_lora`.

    Call `model.compile` after this function. After training, call `merge_lora` before you save the
    model. A saved file does not record which weights are frozen, so a model loaded from it trains
    all of them.

    Args:
        model: functional `keras.Model` built by a function of `ka.models`: one stack of blocks, or
            an encoder-decoder.
        rank: int, the rank of the updates, such as 8.
        targets: list of the names of the projections to adapt, or `"all"`. Attention layers have
            `"query"`, `"key"`, `"value"` and `"attention_output"`. Feed-forward networks have
            `"intermediate"`, `"gate"` and `"output"`.
        lora_alpha: float. The update is multiplied by lora_alpha / rank. None sets it to `rank`, so
            that the factor is 1.

    Raises:
        ValueError: the model lacks one of the projections, all of them are frozen, or LoRA is
            already enabled.

    ```python
    import math
    import keras_attention as ka

    size = dict(num_layers=2, num_heads=2, hidden_dim=16, intermediate_dim=32)
    model = ka.models.text_classifier(100, 2, **size)
    ka.training.enable_lora(model, rank=4)
    trained = sum(math.prod(variable.shape) for variable in model.trainable_variables)
    assert trained == 2 * 2 * (16 * 2 * 4 + 4 * 8) + 16 * 2 + 2  # and the head
    ka.training.merge_lora(model)
    assert model.get_layer("block_0").trainable_variables
    ```
    """
    rank = check_whole_number("enable_lora", "rank", rank)
    body, _ = _split(model)
    adapted, names = [], set()
    for layer in _below(body):
        if keras_internals.has_low_rank(layer):
            raise ValueError(f"{model.name} has LoRA weights already: call merge_lora first.")
        if isinstance(layer, ProjectionOwner):
            projections = layer._projections()
            names |= projections.keys() - {"table"}
            adapted.append((layer, projections))
    chosen_names = sorted(names) if targets == "all" else list(targets)
    if unknown := [name for name in chosen_names if name not in names]:
        raise ValueError(
            f"targets={targets!r}: {model.name} has no projection {unknown[0]!r}. It has "
            f"{', '.join(sorted(names))}."
        )
    chosen = [
        (layer, [name for name in chosen_names if name in projections])
        for layer, projections in adapted
    ]
    chosen = [(layer, names) for layer, names in chosen if names and layer.trainable]
    if not chosen:
        raise ValueError(
            f"targets={targets!r}: all layers of {model.name} with these projections are frozen. "
            "First set layer.trainable = True, or call ka.training.unfreeze(model)."
        )
    frozen, frozen_before = _list_trained(body)
    _FROZEN[model] = frozen, frozen_before
    for one in frozen:
        one.trainable = False
    for layer, names in chosen:
        layer.enable_lora(rank, names, lora_alpha)


def merge_lora(model):
    """Add the LoRA updates of a model to its kernels, and unfreeze what `enable_lora` froze.

    Layers frozen by other means, such as `freeze`, stay frozen. The outputs of the model do not
    change. Afterwards the model can be saved and exported as usual. Compile it again before
    training.
    """
    body, _ = _split(model)
    for layer in _below(body):
        if keras_internals.has_low_rank(layer):
            keras_internals.merge_low_rank(layer)
    frozen, frozen_before = _FROZEN.pop(model, (None, ()))
    if frozen is None:  # the model was saved and loaded in between
        frozen = _list_normalizations(body)
        trained = [layer for layer in _below(body) if layer.trainable]
        frozen += [v for layer in trained for v in keras_internals.trained_variables(layer)]
    ours = {id(one) for one in frozen}
    held = _below([one for one in _below(body) if not one.trainable and id(one) not in ours])
    held += [variable for layer in held for variable in keras_internals.trained_variables(layer)]
    held = {id(one) for one in held}
    for one in frozen:
        one.trainable = id(one) not in held
    for one in frozen_before:  # Keras makes a kernel trainable when it merges an update into it
        one.trainable = False
    keras_internals.forget_compilation(model)


def freeze(model, num_blocks=None):
    """Freeze the lower layers of a model, so that only the upper layers are trained.

    Call `model.compile` afterwards. `unfreeze` makes all layers trainable again.

    Args:
        model: functional `keras.Model` built by a function of `ka.models`. In an encoder-decoder
            the decoder's blocks come after the encoder's.
        num_blocks: int, the number of blocks to freeze, starting at the bottom. The embeddings are
            frozen, too. None freezes all blocks, so that only the head is trained.

    Raises:
        ValueError: the model has fewer than `num_blocks` blocks.

    ```python
    import keras_attention as ka

    size = dict(num_layers=2, num_heads=2, hidden_dim=16, intermediate_dim=32)
    model = ka.models.text_classifier(100, 2, **size)
    ka.training.freeze(model, num_blocks=1)
    assert not model.get_layer("block_0").trainable and model.get_layer("block_1").trainable
    ka.training.freeze(model)
    assert [w.path for w in model.trainable_weights] == ["logits/kernel", "logits/bias"]
    ka.training.unfreeze(model)
    assert model.get_layer("block_0").trainable
    ```
    """
    body, blocks = _split(model)
    if num_blocks is None:
        frozen = body
    else:
        num_blocks = check_whole_number("freeze", "num_blocks", num_blocks)
        if num_blocks > len(blocks):
            raise ValueError(f"num_blocks={num_blocks}: {model.name} has {len(blocks)} blocks.")
        frozen = body[: body.index(blocks[num_blocks - 1]) + 1]
    for layer in frozen:
        layer.trainable = False


def unfreeze(model):
    """Make all layers of a model trainable. Compile the model again before training."""
    for layer in _list_layers(model):  # `model.trainable = True` does not reach them
        layer.trainable = True
    keras_internals.forget_compilation(model)


def layer_rates(model, decay):
    """Return a learning-rate factor for each variable of a model, smaller in lower layers.

    Use it to fine-tune a pretrained model with `LayerwiseAdamW` (Howard and Ruder, 2018). The
    factor is 1 in the head, `decay` in the last block, and is multiplied by `decay` for each block
    below. Embeddings have the smallest factor. A weight that several layers share has the factor of
    the lowest layer.

    Args:
        model: functional `keras.Model` built by a function of `ka.models`, or a model that wraps
            one. Pass the model that will be compiled, after `freeze` and `enable_lora`.
        decay: float, greater than 0 and at most 1, such as 0.9.

    Returns:
        A list of floats, one factor for each of `model.trainable_variables`, in their order.

    Raises:
        ValueError: `decay` is not above 0 and at most 1.
    """
    if not 0 < decay <= 1:
        raise ValueError(f"decay={decay!r}: expected a number above 0, at most 1.")
    body, blocks = _split(model)
    rates, height = {}, len(blocks) + 1
    for layer in body:
        if layer in blocks:
            height = len(blocks) - blocks.index(layer)
        elif layer is body[-1]:
            height = 0
        for variable in layer.variables:
            rates.setdefault(id(variable), float(decay**height))
    return [rates.get(id(variable), 1.0) for variable in model.trainable_variables]


@keras.saving.register_keras_serializable(package="keras_attention")
class LayerwiseAdamW(OwnArguments, AdamW):
    """AdamW with a separate learning-rate factor for each variable.

    The factor scales the gradient step, but not the weight decay.

    Args:
        rates: list of floats, one factor for each of the model's `trainable_variables`, such as the
            result of `layer_rates`. None means 1 for every variable.

    The other arguments are the same as in `keras.optimizers.AdamW`.

    Raises:
        ValueError: the number of factors differs from the number of trainable variables.

    ```python
    import keras_attention as ka

    size = dict(num_layers=2, num_heads=2, hidden_dim=16, intermediate_dim=32)
    model = ka.models.text_classifier(100, 2, **size)
    rates = ka.training.layer_rates(model, 0.5)
    of = dict(zip([variable.path for variable in model.trainable_variables], rates))
    assert of["block_1/feed_forward_norm/gamma"] == 0.5
    assert of["embedding/table/embeddings"] == 0.125
    model.compile(ka.training.LayerwiseAdamW(1e-3, rates=rates), "sparse_categorical_crossentropy")
    ```
    """

    own_arguments = ("rates",)

    def __init__(self, learning_rate=0.001, *, rates=None, name="layerwise_adamw", **kwargs):
        super().__init__(learning_rate, name=name, **kwargs)
        if isinstance(rates, dict):
            raise ValueError(
                "rates= is a dict: expected a list with a factor for each of the model's "
                "trainable_variables, such as the result of ka.training.layer_rates(model, decay)."
            )
        self.rates = None if rates is None else [float(rate) for rate in rates]

    def build(self, variables):
        super().build(variables)
        if self.rates is not None and len(self.rates) != len(variables):
            raise ValueError(
                f"rates= has {len(self.rates)} factors, but {len(variables)} variables are "
                "trained. Call ka.training.layer_rates with the model that is compiled, after "
                "ka.training.freeze or enable_lora."
            )

    def update_step(self, gradient, variable, learning_rate):
        if self.rates is not None:
            factor = self.rates[keras_internals.variable_index(self, variable)]
            learning_rate = ops.multiply(learning_rate, factor)
        super().update_step(gradient, variable, learning_rate)


def _split(model):
    """Return the layers with weights of a model without its head, and which of them are blocks.

    The head are the layers after the last block and its normalization. The result is a tuple of two
    lists.
    """
    layers = _list_layers(model)
    blocks = [layer for layer in layers if _BLOCK.fullmatch(layer.name)]
    if not blocks:
        raise ValueError(
            f"{model!r} has no layer block_0: expected a functional model of blocks, as "
            "ka.models.text_classifier builds it."
        )
    last = layers.index(blocks[-1])
    body = layers[: last + 1] + [one for one in layers[last + 1 :] if one.name == "final_norm"]
    return [layer for layer in body if layer.weights], blocks


def _list_layers(model):
    """Return the list of layers of a functional model in order.

    A nested model is replaced by its layers, and a `Scan`, which runs blocks in a loop, by its
    blocks.
    """
    if isinstance(model, Scan):
        return model.blocks
    layers = []
    for layer in model.layers if isinstance(model, keras.Model) else ():
        layers += _list_layers(layer) if isinstance(layer, (keras.Model, Scan)) else [layer]
    return layers


def _below(layers):
    """Return a list of `layers` and of all layers inside them, without duplicates."""
    layers_by_id = {}
    for layer in layers:
        layers_by_id |= {id(one): one for one in keras_internals.all_layers(layer)}
    return list(layers_by_id.values())


def _list_trained(layers):
    """Return two lists, the trainable and the frozen variables of `layers` and of inner layers.

    The first list also contains the trainable `BatchNormalization` layers themselves. Keras updates
    their moving statistics, unless the layer is frozen.
    """
    below = _below(layers)
    variables = [v for layer in below for v in keras_internals.trained_variables(layer)]
    trained = [v for v in variables if v.trainable]
    trained += _list_normalizations([layer for layer in below if layer.trainable])
    return trained, [v for v in variables if not v.trainable]


def _list_normalizations(layers):
    kind = keras.layers.BatchNormalization
    return [layer for layer in _below(layers) if isinstance(layer, kind)]
