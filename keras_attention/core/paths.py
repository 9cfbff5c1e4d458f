"""Paths of layers that survive saving and cloning a model, and unique names."""

import collections
import itertools
import re

import keras

from keras_attention.core import keras_internals


def paths_in(model):
    """Return a dict {id(layer): path} for every layer in `model`.

    A path such as `block_0/attention` consists of the names of the enclosing layers, without the
    model, and the layer's own name. The paths are the `layer.path`s of a newly built model, which
    Keras does not restore when a model is loaded or cloned: the attention of every block is then
    just `attention`. If layers in different nested models have equal paths, the names of their
    models are prepended.
    """
    short, full = {}, {}

    def walk(layer, inner, outer):
        for child in keras_internals.direct_layers(layer):
            if id(child) in short:
                continue
            inside = [child.name] if isinstance(layer, keras.Model) else [*inner, child.name]
            short[id(child)], full[id(child)] = "/".join(inside), "/".join([*outer, child.name])
            walk(child, inside, [*outer, child.name])

    if not isinstance(model, keras.Model):
        short[id(model)] = full[id(model)] = model.name
    walk(model, [model.name], [])
    counts = collections.Counter(short.values())
    return {key: path if counts[path] == 1 else full[key] for key, path in short.items()}


def unique_names(names):
    """Return a list of unique names with only ASCII letters, digits and underscores.

    Other characters in `names` become underscores, and repeated names get a number. A name that is
    already valid does not change, even if another name becomes the same.
    """
    originals = [str(name) for name in names]
    names = [re.sub(r"\W", "_", name, flags=re.ASCII) for name in originals]
    taken, seen, unique = set(names), set(), []
    accepted = set(originals)
    for name, original in zip(names, originals, strict=True):
        if name in seen or (name in accepted and name != original):
            # Append a number so that the name differs from all others, including later ones.
            numbered = (f"{name}_{number}" for number in itertools.count(1))
            name = next(one for one in numbered if one not in taken)
        taken.add(name)
        seen.add(name)
        unique.append(name)
    return unique
