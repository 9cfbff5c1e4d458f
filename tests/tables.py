"""Tables of tests and docs are complete, or the failure says what to add where."""

import keras_attention as ka


def assert_lists(table, listed, expected):
    """`listed`, the names or classes that `table` has, are those `expected`.

    Args:
        table: str, the name of the table and its file, for whoever has to add a line.
        listed, expected: strings, or classes and functions, which count by name.
    """
    listed, expected = ({getattr(x, "__name__", x) for x in names} for names in (listed, expected))
    assert expected, f"nothing is expected of {table}"
    missing, unknown = sorted(expected - listed), sorted(listed - expected)
    assert not missing, f"add to {table}: {', '.join(map(str, missing))}"
    names = ", ".join(map(str, unknown))
    assert not unknown, f"{table} lists {names}: add it to the package, or remove the line"


def list_builders():
    """Return the names of all builders: functions of `ka.models` that return a new model."""
    functions = {name for name in ka.models.__all__ if name.islower()}
    return functions - {"extend_vocabulary", "replace_head", "sizes"}
