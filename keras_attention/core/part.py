"""The base classes of parts (scores, normalizers, masks, positions, ...), and `get`."""

import dataclasses
import inspect
import re

import keras


class Part:
    """Base class of the parts of attention without weights, such as masks and normalizers.

    A part is a frozen dataclass, and its fields are its config. Decorate subclasses with
    `dataclasses.dataclass(frozen=True)` and
    `keras.saving.register_keras_serializable(package="my_project")`. (In this package it is
    `"keras_attention"`.) Their fields then define how they are printed, compared, hashed, saved and
    loaded. Parts with weights are subclasses of `LayerPart` instead.
    """

    def get_config(self):
        return {
            field.name: keras.saving.serialize_keras_object(getattr(self, field.name))
            for field in dataclasses.fields(self)
        }

    @classmethod
    def from_config(cls, config):
        check_keys(cls, config, [field.name for field in dataclasses.fields(cls)])
        values = {key: keras.saving.deserialize_keras_object(x) for key, x in config.items()}
        return cls(**{key: tuple(x) if isinstance(x, list) else x for key, x in values.items()})


_CONFIGURED = (
    keras.initializers.Initializer,
    keras.regularizers.Regularizer,
    keras.constraints.Constraint,
)


class OwnArguments:
    """A mixin for layers whose `get_config` adds all attributes listed in `own_arguments`.

    Each subclass lists the constructor arguments that its base classes do not have, and stores
    them under the same names. The mixin must come before the Keras class among the bases.
    """

    own_arguments = ()

    def get_config(self):
        names = (name for cls in type(self).__mro__ for name in vars(cls).get("own_arguments", ()))
        values = {name: getattr(self, name) for name in names}
        parts = {
            name: keras.saving.serialize_keras_object(value)
            for name, value in values.items()
            if isinstance(value, (keras.layers.Layer, Part, *_CONFIGURED))
        }
        return {**super().get_config(), **values, **parts}


class LayerPart(OwnArguments, keras.layers.Layer):
    """Base class of the parts of attention with weights, such as learned scores and positions.

    A part with weights is a Keras layer. It supports masking, and rejects unknown keys in a config.
    """

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True

    @classmethod
    def from_config(cls, config):
        # Keras's own error does not list the valid arguments.
        own = [name for name in inspect.signature(cls).parameters if name != "kwargs"]
        check_keys(cls, config, [*own, "name", "trainable", "dtype"])
        return super().from_config(config)


def check_keys(cls, config, names):
    """Raise a ValueError if a config has keys that are not in `names`, the arguments of `cls`."""
    if unknown := sorted(set(config) - set(names)):
        raise ValueError(
            f"{cls.__name__} has no argument {', '.join(unknown)}. "
            f"It takes: {', '.join(names) or 'none'}."
        )


def get(identifier, *, names, family, base, dtype=None):
    """Return the part of attention that a name, a config or a part describes.

    It works like `keras.initializers.get`. Each family of parts (scores, normalizers, masks, ...)
    has its own `get`, such as `ka.masks.get`, which calls this function.

    Args:
        identifier: a part, a key of `names`, the name of a class in `names`, or a config from
            `keras.saving.serialize_keras_object`. None returns None.
        names: dict, name -> class.
        family: str, what to call such a part in messages, for example `"score"`.
        base: the base class of the family.
        dtype: dtype policy for parts with weights, if `identifier` is a name.

    Raises:
        ValueError: `identifier` is an unknown name, or not a part of this family.
    """
    if identifier is None or isinstance(identifier, base):
        return identifier
    if isinstance(identifier, dict):
        return _from_config(identifier, names=names, family=family, base=base)
    if isinstance(identifier, str):
        classes = names | {cls.__name__: cls for cls in names.values()}
        if identifier not in classes:
            raise ValueError(
                f"Unknown {family} {identifier!r}. Known: {', '.join(names)}. "
                f"A {family} can also be given as an object or as its config."
            )
        return _make(classes[identifier], family, dtype)
    raise ValueError(
        f"{family}={identifier!r} is not a {family}: expected one of "
        f"{', '.join(names)}, a config dict, or an instance of {base.__name__}."
    )


def _make(cls, family, dtype):
    try:
        return cls(dtype=dtype) if issubclass(cls, keras.layers.Layer) and dtype else cls()
    except TypeError as error:
        if "required positional argument" not in str(error):
            raise
        needed = re.findall(r"'(\w+)'", str(error))
        public = ".".join(["ka", *cls.__module__.split(".")[1:-1], cls.__name__])
        raise ValueError(
            f"The {family} {cls.__name__} needs {', '.join(needed)}, which a name does not set: "
            f"pass {public}({', '.join(f'{name}=...' for name in needed)})."
        ) from error


def _from_config(config, *, names, family, base):
    classes = names | {cls.__name__: cls for cls in names.values()}
    name = config.get("class_name")
    if "registered_name" not in config:
        if name not in classes:
            raise ValueError(
                f"Unknown {family} in config: class_name={name!r}. Known: {', '.join(names)}."
            )
        inner = config.get("config", {})
        if unknown := sorted(set(config) - {"class_name", "config"}):
            raise ValueError(
                f"A config of a {family} has the keys class_name and config, but "
                f"this one also has {', '.join(unknown)}."
            )
        try:
            return classes[name].from_config(inner)
        except TypeError as error:
            raise ValueError(f"Config of the {family} {name}: {error}") from error
    part = keras.saving.deserialize_keras_object(config)
    if not isinstance(part, base):
        raise ValueError(
            f"The config {config!r} is of a {type(part).__name__}, which is not a {family}."
        )
    return part
