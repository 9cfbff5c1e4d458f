"""`draw_schema`: random JSON schemas within the part that `JSONSchema` supports."""

PATTERNS = (r"^\d{3}-\d{4}$", "^[a-z]+$", "[A-Z]", r"^(red|green) \w", r'^"?\\?$', "^é|b$")
VALUES = (None, True, 0, -3, 2.5, "", "a b", 'x"\\', "é\n", [1, "b"], {"k": [], "l": None})


def draw_schema(random, depth=3):
    """Return a schema, a dict, with at most `depth` levels of objects and arrays.

    `random` is a `numpy.random.Generator`.
    """
    kinds = ["string", "integer", "number", "boolean", "null", "constant", "any", "types"]
    kinds += ["object", "object", "array"] if depth else []
    kind = kinds[random.integers(len(kinds))]
    if kind == "constant":
        chosen = [VALUES[i] for i in random.integers(len(VALUES), size=random.integers(1, 4))]
        return {"const": chosen[0]} if random.random() < 0.3 else {"enum": chosen}
    if kind == "any":
        return {"anyOf": [draw_schema(random, depth - bool(depth)) for _ in range(2)]}
    if kind == "types":
        return {"type": ["string", "null"], "maxLength": 4}
    if kind == "object":
        names = ["a", "name", 'q"', "ü", "x y"][: random.integers(0, 5)]
        required = [name for name in names if random.random() < 0.5]
        properties = {name: draw_schema(random, depth - 1) for name in names}
        schema = {"type": "object", "properties": properties, "required": required}
        return schema | ({"additionalProperties": False} if random.random() < 0.5 else {})
    if kind == "array":
        schema = {"type": "array", "items": draw_schema(random, depth - 1)}
        bounds = sorted(random.integers(0, 4, size=2).tolist())
        names = [name for name in ("minItems", "maxItems") if random.random() < 0.5]
        return schema | {name: bounds[name == "maxItems"] for name in names}
    if kind == "string":
        if random.random() < 0.4:
            return {"type": "string", "pattern": PATTERNS[random.integers(len(PATTERNS))]}
        bounds = sorted(random.integers(0, 8, size=2).tolist())
        names = [name for name in ("minLength", "maxLength") if random.random() < 0.5]
        return {"type": "string"} | {name: bounds[name == "maxLength"] for name in names}
    return {"type": kind}
