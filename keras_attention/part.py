"""What scores, normalizers, masks and positions share: being data, and being found by name."""

import dataclasses
import inspect

import keras


class Part:
    """A part without weights: a frozen dataclass whose fields are its config.

    Subclasses are decorated with `dataclasses.dataclass(frozen=True)` and
    `keras.saving.register_keras_serializable(package="my_project")` (here the package is
    "keras_attention"); they are then printed, compared, hashed, saved and revived by their fields
    alone. A part with weights is a `keras.layers.Layer` instead.
    """

    def get_config(self):
        return {
            field.name: keras.saving.serialize_keras_object(getattr(self, field.name))
            for field in dataclasses.fields(self)
        }

    @classmethod
    def from_config(cls, config):
        known = [field.name for field in dataclasses.fields(cls)]
        check_keys(cls, config, known)
        return cls(**{key: _revive(value) for key, value in config.items()})


def _revive(value):
    value = keras.saving.deserialize_keras_object(value)
    return tuple(value) if isinstance(value, list) else value


def check_keys(cls, config, known):
    """Refuses keys that `cls` does not take, naming those it does."""
    if unknown := sorted(set(config) - set(known)):
        raise ValueError(
            f"{cls.__name__} has no argument {', '.join(unknown)}. "
            f"It takes: {', '.join(known) or 'none'}."
        )


def get(identifier, *, names, family, base, dtype=None):
    """Resolves `identifier` to a part of one family.

    Args:
        identifier: a part, a name in `names` (or its class's name), a config as
            `keras.saving.serialize_keras_object` writes it, or None, which stays None.
        names: dict, name -> class.
        family: str, the word for such a part in messages, for example `"score"`.
        base: what every part of the family is an instance of.
        dtype: dtype policy for parts with weights that are made from a name here.
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
    signature = inspect.signature(cls.__init__)
    needed = [
        name
        for name, parameter in signature.parameters.items()
        if name != "self"
        and parameter.default is parameter.empty
        and parameter.kind is parameter.POSITIONAL_OR_KEYWORD
    ]
    if needed:
        public = ".".join(["ka", *cls.__module__.split(".")[1:-1], cls.__name__])
        raise ValueError(
            f"The {family} {cls.__name__} needs {', '.join(needed)}, which a name cannot carry: "
            f"pass {public}({', '.join(f'{name}=...' for name in needed)})."
        )
    return cls(dtype=dtype) if issubclass(cls, keras.layers.Layer) and dtype else cls()


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
