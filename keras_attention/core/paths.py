"""Names of layers that stay the same when a model is saved or cloned, and unique names."""

import collections
import itertools
import re

import keras

from keras_attention.core import keras_internals


def paths_in(model):
    """Return {id of layer: path} for every layer in `model`.

    A path is the `layer.path` of a newly built model: the names of the layers around it, below the
    model. Keras does not restore `layer.path` when a model is loaded or cloned: every block then
    has an `attention`. If layers of nested models have equal paths, the names of their models come
    first.
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
    """Return names of ASCII letters, digits and underscores, numbered if repeated.

    A name that every format accepts stays unchanged, even if another one would become the same.
    """
    originals = [str(name) for name in names]
    names = [re.sub(r"\W", "_", name, flags=re.ASCII) for name in originals]
    taken, seen, unique = set(names), set(), []
    accepted = set(originals)
    for name, original in zip(names, originals, strict=True):
        if name in seen or (name in accepted and name != original):
            # With a number that no other name has, also of those that come later.
            numbered = (f"{name}_{number}" for number in itertools.count(1))
            name = next(one for one in numbered if one not in taken)
        taken.add(name)
        seen.add(name)
        unique.append(name)
    return unique
