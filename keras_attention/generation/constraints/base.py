"""What constraints are, and any function as one."""

import dataclasses
from collections.abc import Callable

import keras

from keras_attention import part
from keras_attention.part import Part


class Constraint(Part):
    """Says which tokens may come next: `constraint.allows(written)`.

    A row to which nothing is allowed any more ends there, without an END id.
    """

    def allows(self, written):
        """`Written` -> bool (B, V), True = may come; (1, V) where all rows have the same."""
        raise NotImplementedError(f"{type(self).__name__}.allows")


@keras.saving.register_keras_serializable(package="keras_attention")
@dataclasses.dataclass(frozen=True)
class Rule(Constraint):
    """A constraint that is a function, of `keras.ops`, as `Constraint.allows` is.

    Args:
        function: `Written` -> bool (B, V) or (1, V). Registered with Keras, it can be saved.

    Example:

    ```python
    import keras_attention as ka
    from keras import ops


    def even(written):
        return ops.expand_dims(ops.arange(written.vocabulary_size) % 2 == 0, axis=0)


    written = ka.generation.Written([[1, -1]], count=1, begin=1, vocabulary_size=3)
    rule = ka.generation.constraints.Rule(even)
    assert rule.allows(written).numpy().tolist() == [[True, False, True]]
    ```
    """

    function: Callable

    def allows(self, written):
        return self.function(written)


def get(identifier):
    """The constraint that `identifier` means: one, its config, or a function, which is a `Rule`."""
    if isinstance(identifier, type):
        raise ValueError(f"constraints={identifier!r}: expected one of these, not the class.")
    if callable(identifier) and not isinstance(identifier, Constraint):
        return Rule(identifier)
    if not isinstance(identifier, Constraint | dict):
        raise ValueError(
            f"constraints={identifier!r}: expected a Constraint, its config, or a function of "
            "Written that gives bool (B, V)."
        )
    return part.get(identifier, names={}, family="constraint", base=Constraint)
