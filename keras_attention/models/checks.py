"""Checks of builders: keywords that would have no effect beside a part that is given."""

from keras_attention import positions


def check_unused(builder, name, part, **settings):
    """Refuse settings of a builder that have no effect, as a part is given in their place.

    Args:
        builder: the function, whose defaults say what its caller left out.
        name: str, the keyword of the part, such as `"encoder"`. part: the part, or None.
        settings: values of keywords. A position is only what rotates or biases, or None.
    """
    if part is None:
        return
    for keyword, value in settings.items():
        default = builder.__kwdefaults__[keyword]
        if keyword.endswith("position"):
            default = None if default == "learned" else positions.get(default)
            default = positions.for_role(default, "rotate", "bias")
            value = default if value is None else value
        if value != default:
            raise ValueError(
                f"{builder.__name__}({keyword}={value!r}, {name}=...): {keyword} has no effect "
                f"beside the {name} that is given. State it there, or leave one of them out."
            )
