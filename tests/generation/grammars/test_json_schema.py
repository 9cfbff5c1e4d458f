"""Drawn JSON schemas: every text is JSON, and validates."""

import dataclasses
import json
import random as standard_random

import jsonschema
import keras
import numpy as np
import pytest

import keras_attention as ka
from keras_attention.core.scope import MASK_CONSTANT
from keras_attention.export import convert
from keras_attention.export.endpoint import save_endpoints
from keras_attention.export.generation.endpoints import make_endpoints
from keras_attention.export.generation.settings import make_plan
from keras_attention.generation.decoder import Decoder
from tests.generation.grammars.schemas import draw_schema
from tests.generation.grammars.test_regex import SAMPLERS, make_tokens
from tests.generation.grammars.vocabulary import END, TOKENS, walk, write
from tests.grids import sampled

TREE = {
    "$ref": "#/$defs/node",
    "$defs": {
        "node": {
            "type": "object",
            "properties": {"v": {"type": "integer"}, "next": {"$ref": "#/$defs/node"}},
            "required": ["v"],
        }
    },
}


def make(schema, **options):
    return ka.generation.JSONSchema(schema, TOKENS, **options)


def check(schema, text):
    jsonschema.validate(json.loads(text), schema)


def test_walks_through_the_tables_of_drawn_schemas_validate():
    for seed in range(25):
        schema, random = draw_schema(np.random.default_rng(seed)), standard_random.Random(seed)
        constraint = make(schema)
        texts = constraint.tokens.encode()
        for more in (0, 5, 20):
            room = constraint.least_tokens + more
            check(schema, walk(constraint.automaton, texts, room, random).decode())


@pytest.mark.slow
@pytest.mark.parametrize("part", sampled(range(20)))
def test_generated_texts_of_a_thousand_drawn_schemas_validate(part):
    for seed in range(50 * part, 50 * part + 50):
        schema = draw_schema(np.random.default_rng(seed))
        constraint, sampler = make(schema), SAMPLERS[seed % 3]
        for row in make_tokens(constraint, sampler, constraint.least_tokens + seed % 12):
            check(schema, write(row))


@pytest.mark.slow
@pytest.mark.parametrize("seed", sampled(range(4)))
def test_texts_that_a_file_generates_validate(seed, tmp_path):
    schema = {"anyOf": [draw_schema(np.random.default_rng([seed, k])) for k in range(4)]}
    constraint, number = make(schema), 40
    model = ka.models.causal_language_model(
        len(TOKENS) + 1, num_layers=1, num_heads=2, hidden_dim=8, intermediate_dim=8
    )
    request = ka.export.Generation(
        [ka.generation.Sample(3.0), ka.generation.Beam(2)],
        max_length=48,
        max_new_tokens=number,
        end_token_id=END,
        constraints=constraint,
    )
    report = ka.export.to_litert(model, tmp_path / "model.tflite", generate=request)
    described = report.generation["constraints"]
    assert described[0]["name"] == "JSONSchema" and "tokens" not in described[0]
    generator = ka.export.LiteRTGenerator(tmp_path / "model.tflite")
    for k in range(10):
        prompt = [[5, 6, 7], [8 + k], [9, 10]]
        for row in generator.loop(prompt, seed=k)["generated_ids"]:
            check(schema, write(row))
    for row in generator.loop(prompt, "beam")["generated_ids"][:, 0]:
        check(schema, write(row))


PER_FILE, ROWS, PROMPT = 20, 4, 3


@pytest.mark.sweep
@pytest.mark.parametrize("part", range(50))
def test_each_of_a_thousand_drawn_schemas_validates_from_a_file(part, tmp_path):
    """Check files with one small model and a signature for each schema."""
    schemas = [draw_schema(np.random.default_rng([part, k])) for k in range(PER_FILE)]
    path, points = export_each(schemas, tmp_path), range(PER_FILE)
    random = np.random.default_rng(part)
    for schema, run in zip(
        schemas, [ka.export.load(path, f"each_{k}") for k in points], strict=True
    ):
        shape = run.shapes["uniform"]
        prompt = random.integers(1, len(TOKENS) + 1, (ROWS, PROMPT)).astype("int32")
        uniform = (random.integers(1 << 23, size=shape) / (1 << 23)).astype("float32")
        for row in run({"token_ids": prompt, "uniform": uniform})["generated_ids"]:
            check(schema, write(row))


def export_each(schemas, folder):
    """Return the path of a LiteRT file with a signature for each schema, `each_0` and so on."""
    keras.utils.set_random_seed(0)
    model = ka.models.causal_language_model(
        len(TOKENS) + 1, num_layers=1, num_heads=2, hidden_dim=8, intermediate_dim=8
    )
    decoder, points = Decoder(model), []
    for k, schema in enumerate(schemas):
        constraint = make(schema)
        number = constraint.least_tokens + k % 12
        request = ka.export.Generation(
            ka.generation.Sample(3.0),
            max_length=PROMPT + number - 1,
            max_new_tokens=number,
            end_token_id=END,
            constraints=constraint,
        )
        (*_, loop) = make_endpoints(make_plan(decoder, request, ROWS, PROMPT))
        points.append(dataclasses.replace(loop, name=f"each_{k}"))
    save_endpoints(model, points, folder / "saved_model", MASK_CONSTANT)
    path = folder / "model.tflite"
    path.write_bytes(convert.convert_saved_model(folder / "saved_model", points, model))
    return path


@pytest.mark.parametrize(
    ("schema", "right", "wrong"),
    [
        ({"type": "integer"}, ["0", "-12"], ["01", "1.0", ""]),
        ({"type": "number"}, ["0.5", "-1e9", "3"], [".5", "1.", "1e999"]),
        ({"type": "string", "maxLength": 2}, ['""', r'"\n\""', '"é日"'], ['"abc"', '"\n"', '"a']),
        ({"type": "string", "pattern": "^a$|b"}, ['"a"', '"xby"'], ['"xa"', '"c"']),
        ({"type": "string", "pattern": "a", "minLength": 2}, ['"ab"'], ['"a"', '"bb"']),
        ({"enum": [1, "a", None, {"b": [2]}]}, ["1", "null", '{"b": [2]}'], ["a", "2"]),
        ({"enum": [1, "a", True], "type": "integer"}, ["1"], ['"a"', "true"]),
        ({"type": ["null", "boolean"]}, ["null", "true"], ["0"]),
        ({"type": "object"}, ["{}"], ['{"a": 1}']),
        (
            {"type": "array", "items": {"type": "null"}, "minItems": 1, "maxItems": 2},
            ["[null]", "[null, null]"],
            ["[]", "[null,null]", "[null, null, null]"],
        ),
        (TREE, ['{"v": 1}', '{"v": 1, "next": {"v": 2}}'], ['{"next": {"v": 2}}']),
    ],
)
def test_texts_of_a_schema(schema, right, wrong):
    constraint = make(schema)
    assert all(map(constraint.matches, right)) and not any(map(constraint.matches, wrong))
    for text in right:
        check(schema, text)


def test_optional_properties_keep_their_order():
    properties = {name: {"type": "null"} for name in "abc"}
    constraint = make({"type": "object", "properties": properties, "required": ["b"]})
    names = ["b", "ab", "bc", "abc"]
    for chosen in [*names, "", "a", "c", "ac", "ba", "bb"]:
        text = json.dumps(dict.fromkeys(chosen)) if chosen != "bb" else '{"b": null, "b": null}'
        assert constraint.matches(text) == (chosen in names)


def test_definitions_contain_themselves_up_to_a_depth():
    text = '{"v": 0}'
    for depth in range(5):
        assert make(TREE, max_depth=2).matches(text) == (depth <= 2)
        text = f'{{"v": 0, "next": {text}}}'


def test_separators():
    schema = {"type": "array", "items": {"const": {"a": 1}}}
    assert make(schema, separators=(",", ":")).matches('[{"a":1},{"a":1}]')


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        (
            {"type": "object", "minProperties": 1},
            "at #: the keyword 'minProperties' is not supported",
        ),
        ({"type": "integer", "minimum": 1}, "'minimum' is not supported of type integer. Use type"),
        ({"type": "array"}, "at #: the array has no items. Add items"),
        ({"properties": {}}, "the schema has no type. Add"),
        ({"type": "date"}, "'date' is not a type. Use object, array"),
        ({"type": "object", "required": ["a"]}, "required has 'a', which properties lacks. Add"),
        ({"type": "array", "items": True}, "at #/items: True describes no values"),
        ({"type": "string", "pattern": r"\b"}, "at #/pattern: .* is not supported"),
        ({"type": "string", "minLength": 2, "maxLength": 1}, "minLength is above maxLength"),
        ({"type": "string", "maxLength": -1}, "maxLength is -1. Write a whole number"),
        ({"anyOf": []}, "anyOf is .*Write a list"),
        ({"$ref": "other.json"}, "'other.json' is not in the schema. Use"),
        ({"anyOf": [{"type": "null"}], "minimum": 1}, "'minimum' is not supported beside anyOf"),
        ("{", "the schema is not JSON"),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}}, "allows no text"),
    ],
)
def test_unsupported_schemas_are_refused(schema, message):
    with pytest.raises(ValueError, match=rf"JSONSchema\(.*{message}"):
        make(schema)
