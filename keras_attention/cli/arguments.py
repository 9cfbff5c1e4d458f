"""Errors and advice name Python arguments; here these become options of the command line."""

import re

# An argument in a text, with its value or without: `beam=0`, `encoding='cp1252'`, `train=`.
ARGUMENT = re.compile(r"""(?<![\w.(])(\w+)=('[^']*'|"[^"]*"|[\w./-]*\w)?(?![\w(\[{'"=])""")


def write_options(text, options):
    """Write the arguments in `text` as options.

    Args:
        text: str.
        options: dict, the name of an argument -> the option that stands for it.

    ```python
    from keras_attention.cli.arguments import write_options

    options = {"max_length": "--max-length", "encoding": "--encoding"}
    assert write_options("with a larger max_length=.", options) == "with a larger --max-length."
    assert write_options("try encoding='cp1252'", options) == "try --encoding cp1252"
    ```
    """

    def write(match):
        argument, value = match.groups()
        if argument not in options:
            return match[0]
        value = value and value.strip("'\"")
        return f"{options[argument]} {value}" if value else options[argument]

    return ARGUMENT.sub(write, text)
