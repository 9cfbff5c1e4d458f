"""The base classes of parts (scores, normalizers, masks, positions, ...), and `get`."""

import dataclasses
import inspect
import re

import keras


class Part:
    """A part without weights: a frozen dataclass whose fields are its config.

    Subclasses are decorated with `dataclasses.dataclass(frozen=True)` and
    `keras.saving.register_keras_serializable(package="my_project")` (here the package is
    "keras_attention"). Their fields then define how they are printed, compared, hashed, saved and
    loaded. A part with weights is a `LayerPart` instead.
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
    """A base before a Keras class: its config has the attributes in `own_arguments`.

    A subclass names the arguments of its constructor that its bases do not have.
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
    """A part with weights: a layer that passes masks on and whose config has no unknown keys."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True

    @classmethod
    def from_config(cls, config):
        # The error of Keras would not list what the part takes.
        own = [name for name in inspect.signature(cls).parameters if name != "kwargs"]
        check_keys(cls, config, [*own, "name", "trainable", "dtype"])
        return super().from_config(config)


def check_keys(cls, config, known):
    """Refuse keys that `cls` does not take. The error lists the keys that it takes."""
    if unknown := sorted(set(config) - set(known)):
        raise ValueError(
            f"{cls.__name__} has no argument {', '.join(unknown)}. "
            f"It takes: {', '.join(known) or 'none'}."
        )


def get(identifier, *, names, family, base, dtype=None):
    """Return the part of a family for `identifier`, as `keras.initializers.get` does.

    Each family has its `get`, such as `ka.masks.get`, which calls this one.

    Args:
        identifier: a part, a name in `names` (or a class's name), a config from
            `keras.saving.serialize_keras_object`, or None, which stays None.
        names: dict, name -> class.
        family: str, the word for such a part in messages, for example `"score"`.
        base: the base class of the family.
        dtype: dtype policy for parts with weights that are made from a name.
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
        f"{family}={identifier!r} is no {family}: expected one of "
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
            f"The {family} {cls.__name__} needs {', '.join(needed)}, which a name cannot carry: "
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
                f"A config of a {family} has the keys class_name and config; "
                f"received also {', '.join(unknown)}."
            )
        try:
            return classes[name].from_config(inner)
        except TypeError as error:
            raise ValueError(f"Config of the {family} {name}: {error}") from error
    part = keras.saving.deserialize_keras_object(config)
    if not isinstance(part, base):
        raise ValueError(
            f"The config {config!r} describes no {family} but a {type(part).__name__}."
        )
    return part
