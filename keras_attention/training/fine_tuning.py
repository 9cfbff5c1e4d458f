"""Fine-tuning of a part of a model: LoRA, frozen blocks, lower rates for lower layers."""

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
_FROZEN = weakref.WeakKeyDictionary()  # model -> what `enable_lora` froze of it


def enable_lora(model, rank, targets=TARGETS, *, lora_alpha=None):
    """Train low-rank changes of a model's projections, and its head (Hu et al., 2021).

    The narrow matrices and the layers after the last block are trained, the rest is frozen. The
    change of a kernel (D, N, H) is (D, N, rank) · (rank, H), as in `keras.layers.EinsumDense`.
    `BatchNormalization` keeps its moving statistics and normalizes with them. Layers that are
    already frozen get no changes, and stay frozen after `merge_lora`.

    `merge_lora` adds the changes to the kernels, and the model is then an ordinary one. Call
    `model.compile` after either. Call `merge_lora` before you save the model: a file does not say
    which weights are frozen, so all weights of a loaded model are trained.

    Args:
        model: functional `keras.Model` of a builder here with one stack of blocks, or an
            encoder-decoder.
        rank: int, columns of the narrow matrices, such as 8.
        targets: list of names of projections, or `"all"`: `"query"`, `"key"`, `"value"` and
            `"attention_output"` of attention, `"intermediate"`, `"gate"` and `"output"` of
            feed-forward networks.
        lora_alpha: float. The change is multiplied by lora_alpha / rank. None for rank.

    Raises:
        ValueError: the model has no such projection, all of them are frozen, or LoRA is enabled
            already.

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
            raise ValueError(f"{model.name} is adapted by LoRA already: call merge_lora first.")
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
            "Set their trainable, or call ka.training.unfreeze(model), first."
        )
    frozen, frozen_before = _list_trained(body)
    _FROZEN[model] = frozen, frozen_before
    for one in frozen:
        one.trainable = False
    for layer, names in chosen:
        layer.enable_lora(rank, names, lora_alpha)


def merge_lora(model):
    """Add to the kernels what `enable_lora` has trained, and make trainable what it froze.

    Layers that were frozen since, for example by `freeze`, stay frozen. Outputs stay the same.
    Files saved or exported afterwards are those of an ordinary model. Compile the model again to
    train it.
    """
    body, _ = _split(model)
    for layer in _below(body):
        if keras_internals.has_low_rank(layer):
            keras_internals.merge_low_rank(layer)
    frozen, frozen_before = _FROZEN.pop(model, (None, ()))
    if frozen is None:  # it was saved and loaded in between
        frozen = _list_normalizations(body)
        trained = [layer for layer in _below(body) if layer.trainable]
        frozen += [v for layer in trained for v in keras_internals.trained_variables(layer)]
    ours = {id(one) for one in frozen}
    held = _below([one for one in _below(body) if not one.trainable and id(one) not in ours])
    held += [variable for layer in held for variable in keras_internals.trained_variables(layer)]
    held = {id(one) for one in held}
    for one in frozen:
        one.trainable = id(one) not in held
    for one in frozen_before:  # Keras makes a kernel trainable when it adds a change to it
        one.trainable = False
    keras_internals.forget_compilation(model)


def freeze(model, num_blocks=None):
    """Freeze the lower layers of a model, so that only the upper ones are trained.

    Args:
        model: functional `keras.Model` of a builder here with one stack of blocks. In an
            encoder-decoder the decoder's blocks come after the encoder's.
        num_blocks: int, how many blocks to freeze from the bottom, with the embeddings. None
            freezes all, so that only the head is trained. `unfreeze` undoes it. Call
            `model.compile` afterwards.

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
    """Make all layers of a model trainable. Compile it again to train it."""
    for layer in _list_layers(model):  # `model.trainable = True` does not reach them
        layer.trainable = True
    keras_internals.forget_compilation(model)


def layer_rates(model, decay):
    """Compute factors of the learning rate, lower for lower layers (Howard and Ruder, 2018).

    The head has 1, and each block `decay` times the factor of the block above. Embeddings come
    last. Weights that several layers share have the factor of the lowest.

    Args:
        model: functional `keras.Model` of a builder here, or a model around one: the one to
            compile, after `freeze` and `enable_lora`.
        decay: float above 0, at most 1, such as 0.9.

    Returns:
        list of float, a factor for each of `model.trainable_variables`, for `LayerwiseAdamW`. They
        go by place, since paths of variables are not unique.
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
    """AdamW with a factor of the learning rate for each variable.

    The factor applies to the step by the gradient. The weight decay stays the same.

    Args:
        rates: list of float, a factor for each of the model's `trainable_variables`, as from
            `layer_rates`. None for 1. Other arguments are those of `keras.optimizers.AdamW`.

    Raises:
        ValueError: the number of variables to train differs.

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
                "rates= is a dict: expected a list, a factor for each of the model's "
                "trainable_variables, as ka.training.layer_rates(model, decay) gives it."
            )
        self.rates = None if rates is None else [float(rate) for rate in rates]

    def build(self, variables):
        super().build(variables)
        if self.rates is not None and len(self.rates) != len(variables):
            raise ValueError(
                f"rates= has {len(self.rates)} factors, and {len(variables)} variables are "
                "trained: call ka.training.layer_rates with the model that is compiled, after "
                "ka.training.freeze or enable_lora."
            )

    def update_step(self, gradient, variable, learning_rate):
        if self.rates is not None:
            factor = self.rates[keras_internals.variable_index(self, variable)]
            learning_rate = ops.multiply(learning_rate, factor)
        super().update_step(gradient, variable, learning_rate)


def _split(model):
    """Return the layers up to the norm after the last block, and the blocks among them."""
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
    """List the layers of a functional model, and of the encoder and decoder in it, in order.

    Blocks that run as one loop are in the place of the loop.
    """
    if isinstance(model, Scan):
        return model.blocks
    layers = []
    for layer in model.layers if isinstance(model, keras.Model) else ():
        layers += _list_layers(layer) if isinstance(layer, (keras.Model, Scan)) else [layer]
    return layers


def _below(layers):
    """List each of `layers`, and all layers inside them, once."""
    layers_by_id = {}
    for layer in layers:
        layers_by_id |= {id(one): one for one in keras_internals.all_layers(layer)}
    return list(layers_by_id.values())


def _list_trained(layers):
    """Return what training changes in `layers` and inside them, and the frozen variables.

    Keras updates the moving statistics of a `BatchNormalization` unless the layer is frozen, so the
    first list has such layers, too.
    """
    below = _below(layers)
    variables = [v for layer in below for v in keras_internals.trained_variables(layer)]
    trained = [v for v in variables if v.trainable]
    trained += _list_normalizations([layer for layer in below if layer.trainable])
    return trained, [v for v in variables if not v.trainable]


def _list_normalizations(layers):
    kind = keras.layers.BatchNormalization
    return [layer for layer in _below(layers) if isinstance(layer, kind)]
