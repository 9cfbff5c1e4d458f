"""`JSONSchema`: a constraint that allows only JSON of a schema."""

import dataclasses
import json

import keras

from keras_attention.core import checks
from keras_attention.generation.grammars.expressions import EMPTY, NOTHING
from keras_attention.generation.grammars.pattern import EVERY, parse_pattern, subtract_ranges
from keras_attention.generation.grammars.regex import Grammar

ANNOTATIONS = {"title", "description", "default", "examples", "$schema", "$id", "$comment", "$defs",
               "definitions", "deprecated", "readOnly", "writeOnly"}  # fmt: skip
KEYWORDS = {
    "object": {"properties", "required", "additionalProperties"},
    "array": {"items", "minItems", "maxItems"},
    "string": {"pattern", "minLength", "maxLength"},
    "integer": set(),
    "number": set(),
    "boolean": set(),
    "null": set(),
}
INTEGER = r"-?(0|[1-9]\d{0,14})"  # exact as a float64, which is what JavaScript reads
NUMBERS = {"integer": INTEGER, "number": INTEGER + r"(\.\d{1,15})?([eE][+-]?\d{1,2})?"}
ESCAPED = ((0, 31), (34, 34), (92, 92))  # the characters that a JSON string must escape


@keras.saving.register_keras_serializable(package="keras_attention")
@dataclasses.dataclass(frozen=True)
class JSONSchema(Grammar):
    """Lets `ka.generation.generate` write only JSON that a JSON Schema describes.

    Pass it as `constraints=` to `generate`, or to `ka.export.Generation` for an exported file. As
    with `Regex`, a text can only end when it is complete, and the schema is compiled into tables
    for the tokens of the vocabulary.

    These parts of JSON Schema (draft 2020-12) are supported:

    | type | keywords |
    | --- | --- |
    | `object` | `properties`, `required`, `additionalProperties` |
    | `array` | `items`, `minItems`, `maxItems` |
    | `string` | `pattern`, `minLength`, `maxLength` |
    | `integer`, `number`, `boolean`, `null` | none |
    | any | `enum`, `const`, `anyOf`, a list of types, `$ref` to `$defs` |

    Other keywords raise an error, except annotations such as `description`. An object has its
    properties in the order of the schema. It never has other properties, even if the schema allows
    them. Numbers have at most 15 digits before the point, and 15 after it.

    Args:
        schema: dict, or str with JSON.
        tokens: the tokenizer of the model, one of `ka.data` (`Characters`, `Words`, `Subwords`,
            `PretrainedTokenizer`), a `TokenTexts`, or a list with the text of each id, None for
            special tokens.
        max_depth: int, how many times a definition of `$defs` may contain itself.
        separators: str between items, and str after a key, as in `json.dumps`.

    Raises:
        ValueError: the schema has an unsupported keyword or a mistake, or needs characters that no
            token has.

    ```python
    import keras_attention as ka

    characters = ka.data.Characters.build(['{"name: 0123456789}'])
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    person = ka.generation.JSONSchema(schema, characters)
    assert person.matches('{"n": 12}') and not person.matches('{"n": 012}')
    ```
    """

    schema: str
    tokens: object = dataclasses.field(repr=False)
    max_depth: int = 3
    separators: tuple = (", ", ": ")

    def __post_init__(self):
        checks.check_whole_numbers(self, "max_depth", least=0)
        schema = self.schema
        if isinstance(schema, dict):
            schema = json.dumps(schema, ensure_ascii=False)
        object.__setattr__(self, "schema", schema)
        object.__setattr__(self, "separators", tuple(self.separators))
        super().__post_init__()

    def express(self, expressions):
        try:
            schema = json.loads(self.schema)
        except (TypeError, ValueError) as error:
            raise ValueError(f"the schema is not JSON ({error}). Pass a dict.") from error
        return _Reader(schema, expressions, self.max_depth, self.separators).read(schema, "#")


class _Reader:
    """Makes expressions of schemas. `read` returns the expression of a schema.

    In all methods `path` is where the schema is, such as `#/properties/name`, for errors, and
    `inside` are the paths of the definitions that contain it.
    """

    def __init__(self, root, expressions, max_depth, separators):
        self.root, self.make, self.max_depth = root, expressions, max_depth
        self.comma, self.colon = (self.make.literal(text) for text in separators)
        self.separators = separators

    def read(self, schema, path, inside=()):
        if not isinstance(schema, dict):
            fix = 'Write a dict with a type, such as {"type": "string"}'
            raise _error(path, f"{schema!r} describes no values", fix)
        keywords = schema.keys() - ANNOTATIONS
        for name, read in (
            ("$ref", self.read_reference),
            ("anyOf", self.read_any),
            ("const", self.read_constants),
            ("enum", self.read_constants),
        ):
            if name in keywords:
                also = {"type"} if read == self.read_constants else set()
                _check_keywords(keywords - {name} - also, (), path, f"beside {name}")
                return read(schema, path, inside)
        if "type" not in schema:
            raise _error(path, "the schema has no type", "Add a type, enum, const, anyOf or $ref")
        types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        if wrong := [name for name in types if name not in KEYWORDS]:
            raise _error(path, f"{wrong[0]!r} is not a type", f"Use {', '.join(KEYWORDS)}")
        allowed = {"type"}.union(*(KEYWORDS[name] for name in types))
        _check_keywords(keywords, allowed, path, f"of type {', '.join(types)}")
        return self.make.either(self.read_type(name, schema, path, inside) for name in types)

    def read_type(self, name, schema, path, inside):
        if name in NUMBERS:
            return parse_pattern(NUMBERS[name], self.make)
        if name == "boolean":
            return self.make.either([self.make.literal("true"), self.make.literal("false")])
        if name == "null":
            return self.make.literal("null")
        return getattr(self, f"read_{name}")(schema, path, inside)

    def read_reference(self, schema, path, inside):
        target = schema["$ref"]
        if inside.count(target) > self.max_depth:
            return NOTHING
        definition = self.root
        try:
            begin, *names = target.split("/")
            for name in names:
                definition = definition[name.replace("~1", "/").replace("~0", "~")]
        except (AttributeError, KeyError, TypeError):
            begin = None
        if begin != "#":
            raise _error(path, f"$ref {target!r} is not in the schema", "Use #/$defs/name")
        return self.read(definition, target, (*inside, target))

    def read_any(self, schema, path, inside):
        choices = _read_list(schema, "anyOf", path)
        return self.make.either(
            self.read(choice, f"{path}/anyOf/{i}", inside) for i, choice in enumerate(choices)
        )

    def read_constants(self, schema, path, inside):
        values = [schema["const"]] if "const" in schema else _read_list(schema, "enum", path)
        if "type" in schema:
            types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
            values = [value for value in values if any(_is_a(value, name) for name in types)]
        dump = {"ensure_ascii": False, "separators": self.separators, "allow_nan": False}
        return self.make.either(self.make.literal(json.dumps(value, **dump)) for value in values)

    def read_object(self, schema, path, inside):
        properties, required = schema.get("properties", {}), schema.get("required", [])
        if missing := [name for name in required if name not in properties]:
            fix = "Add it to properties, or remove it from required"
            raise _error(path, f"required has {missing[0]!r}, which properties lacks", fix)
        empty, after = EMPTY, EMPTY  # what may follow no member, and a member
        for name, value in reversed(properties.items()):
            key = self.make.literal(json.dumps(name, ensure_ascii=False))
            value = self.read(value, f"{path}/properties/{name}", inside)
            member = self.make.sequence([key, self.colon, value])
            first = self.make.sequence([member, after])
            later = self.make.sequence([self.comma, member, after])
            empty = first if name in required else self.make.either([first, empty])
            after = later if name in required else self.make.either([later, after])
        return self.make.sequence([self.make.literal("{"), empty, self.make.literal("}")])

    def read_array(self, schema, path, inside):
        least, most = _read_bounds(schema, "minItems", "maxItems", path)
        if "items" not in schema:
            raise _error(path, "the array has no items", "Add items, the schema of each item")
        items = EMPTY
        if most != 0:
            item = self.read(schema["items"], f"{path}/items", inside)
            more = self.make.repeat(
                self.make.sequence([self.comma, item]),
                max(least - 1, 0),
                None if most is None else most - 1,
            )
            items = self.make.sequence([item, more])
            items = items if least else self.make.either([items, EMPTY])
        return self.make.sequence([self.make.literal("["), items, self.make.literal("]")])

    def read_string(self, schema, path, inside):
        least, most = _read_bounds(schema, "minLength", "maxLength", path)
        text = self.make.repeat(self.read_characters(EVERY), least, most)
        if "pattern" in schema:
            try:
                pattern = parse_pattern(
                    schema["pattern"], self.make, self.read_characters, search=True
                )
            except ValueError as error:
                raise ValueError(f"at {path}/pattern: {error}") from error
            text = self.make.both(text, pattern)
        quote = self.make.literal('"')
        return self.make.sequence([quote, text, quote])

    def read_characters(self, ranges):
        """Return the expression for one character of a JSON string, escaped if it must be."""
        plain = subtract_ranges(ranges, ESCAPED)
        escaped = [c for a, b in ESCAPED for c in range(a, b + 1)
                   if any(first <= c <= last for first, last in ranges)]  # fmt: skip
        literals = [self.make.literal(json.dumps(chr(c))[1:-1]) for c in escaped]
        return self.make.either([self.make.characters(plain), *literals])


def _check_keywords(keywords, allowed, path, where):
    if wrong := sorted(keywords - set(allowed)):
        fix = f"Use {', '.join(sorted(allowed))}" if allowed else "Remove it"
        raise _error(path, f"the keyword {wrong[0]!r} is not supported {where}", fix)


def _read_list(schema, name, path):
    values = schema[name]
    if not isinstance(values, list) or not values:
        raise _error(path, f"{name} is {values!r}", "Write a list of at least one")
    return values


def _read_bounds(schema, least, most, path):
    """Return the values of two keywords, int and int or None."""
    bounds = schema.get(least, 0), schema.get(most)
    for name, value in zip((least, most), bounds, strict=True):
        if value is not None and (type(value) is not int or value < 0):
            raise _error(path, f"{name} is {value!r}", "Write a whole number of at least 0")
    if bounds[1] is not None and bounds[0] > bounds[1]:
        raise _error(path, f"{least} is above {most}", f"Write a larger {most}")
    return bounds


def _is_a(value, name):
    """Return whether a value of `json.loads` is of the JSON type `name`."""
    if isinstance(value, bool) or value is None:
        return name == ("null" if value is None else "boolean")
    types = {"object": dict, "array": list, "string": str, "integer": int, "number": (int, float)}
    return isinstance(value, types.get(name, ()))


def _error(path, problem, fix):
    return ValueError(f"at {path}: {problem}. {fix}.")
