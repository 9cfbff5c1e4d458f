"""Keywords of builders: those of a stack are forwarded, wrong ones refused with a hint."""

import difflib
import functools
import inspect

from keras_attention import positions


def takes_keywords_of(stack, *, without=(), **defaults):
    """Decorates a builder: its `**` takes the fields of `stack`, with these defaults.

    A keyword that neither builder nor stack has is refused with the list of those known. The
    signature of the builder names them all, for that list and for `help`; nothing else reads it.

    Args:
        stack: `TransformerEncoder` or `TransformerDecoder`.
        without: names of fields that the builder sets itself, or cannot have.
        defaults: values of fields for this builder, where its caller gives none.
    """

    def decorate(builder):
        signature = inspect.signature(builder)
        own = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
        taken = {*without, *(parameter.name for parameter in own)}
        forwarded = [
            parameter.replace(
                default=defaults.get(name, parameter.default), annotation=parameter.empty
            )
            for name, parameter in inspect.signature(stack).parameters.items()
            if name not in taken
        ]
        known = [parameter.name for parameter in [*own, *forwarded]]

        @functools.wraps(builder)
        def build(*args, **keywords):
            check_keywords(builder.__name__, keywords, known)
            return builder(*args, **{**defaults, **keywords})

        build.__signature__ = signature.replace(parameters=[*own, *forwarded])
        return build

    return decorate


def check_keywords(owner, keywords, known):
    """Refuses a keyword that is not `known`, with the nearest one and the list of all."""
    for name in keywords:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f" Did you mean {near[0]}?" if near else ""
            raise TypeError(
                f"{owner}() got an unexpected keyword argument {name!r}.{hint} "
                f"It takes {', '.join(known)}."
            )


def get_position(position, max_length=None):
    """A position by object, name, config or list; "learned" is a table of `max_length`."""
    if position != "learned":
        return positions.get(position)
    if max_length is None:
        raise ValueError(
            "position='learned' needs max_length=, the number of positions that are learned. Give "
            "it, or use a position that has no end, such as 'sinusoidal' or 'rotary'."
        )
    return positions.Learned(max_length)
