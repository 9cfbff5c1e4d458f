"""The endpoints of a model that generates, as functions of named tensors.

`encode` reads a source, `step` takes new tokens (of a prompt, or the last one) with what was kept
of those before, `generate` and `beam` are whole loops. All are one `Decoder`, called differently.
"""

import dataclasses

from keras import ops

from keras_attention.export import backend
from keras_attention.export import endpoint as endpoints
from keras_attention.export.endpoint import Endpoint
from keras_attention.export.report import Tensor
from keras_attention.generation import beam_search, cache, loop
from keras_attention.generation.samplers import Beam, Greedy

TOKENS, INDEX, START, UNIFORM = "token_ids", "index", "start", "uniform"


def of(decoder, settings, batch_size=None, sequence_length=None):
    """All endpoints, a list in the order in which they are called.

    Args:
        batch_size: int fixes the number of rows.
        sequence_length: int fixes the length of sources, or of the prompts of a language model:
            `prefill` then takes as many tokens, and `step` one.
    """
    encode, layout = _encode(decoder, settings, batch_size, sequence_length)
    cache = tuple(Tensor(n, (batch_size, *shape), kind) for n, (shape, kind) in layout.items())
    lengths = {"step": None if sequence_length is None else 1}
    if sequence_length is not None and not decoder.has_source:
        lengths = {"prefill": sequence_length, **lengths}
    steps = [_step(decoder, cache, n, batch_size, length) for n, length in lengths.items()]
    loops = [
        _loop(decoder, settings, name, encode, batch_size, sequence_length)
        for name in settings.rules
    ]
    return [*([encode] if encode else []), *steps, *loops]


def _encode(decoder, settings, batch_size, sequence_length):
    """The endpoint (None for a language model), and the shapes of the cache, known as they are."""
    layout = decoder.layout(settings.max_length)
    if not decoder.has_source:
        return None, layout
    plain = endpoints.of(decoder.encoder, batch_size, sequence_length)

    def call(tensors):
        source = endpoints.pack(decoder.encoder, tensors)
        rows = ops.shape(tensors[plain.inputs[0].name])[0]
        return decoder.start(rows, settings.max_length, source)

    encode = dataclasses.replace(
        plain, name="encode", outputs=tuple(layout), call=call, cache=tuple(layout)
    )
    for name, shape in _traced_shapes(encode).items():
        axes = zip(layout[name][0], shape[1:], strict=True)
        shape = tuple(known if axis is None else axis for axis, known in axes)
        layout[name] = shape, layout[name][1]
    return encode, layout


def _traced_shapes(endpoint):
    """The shapes of what an endpoint gives, as far as its inputs decide them."""
    tf = backend.tensorflow()
    specs = {t.name: tf.TensorSpec(t.shape, t.dtype) for t in endpoint.inputs}
    traced = tf.function(endpoint.call, autograph=False).get_concrete_function(specs)
    return {name: tuple(x.shape) for name, x in traced.structured_outputs.items()}


def _step(decoder, cache, name, batch_size, length):
    """New tokens, how many are kept already, and what was kept; their logits, and what is kept."""
    tokens = Tensor(TOKENS, (batch_size, length), "int32")
    inputs = (tokens, Tensor(INDEX, (), "int32"))
    if not decoder.has_source:
        inputs = (*inputs, Tensor(START, (batch_size,), "int32"))
    kept = tuple(tensor.name for tensor in cache if tensor.name not in decoder.source_names)

    def call(tensors):
        before = {tensor.name: tensors[tensor.name] for tensor in cache}
        if START in tensors:
            before[START] = tensors[START]
        logits, after = decoder.step(tensors[TOKENS], before, tensors[INDEX])
        return {"logits": logits, **{name: after[name] for name in kept}}

    names = tuple(tensor.name for tensor in cache)
    lengths = {tensor.name: () for tensor in (*inputs, *cache)} | {TOKENS: (1,)}
    return Endpoint(name, (*inputs, *cache), lengths, ("logits", *kept), call, names)


def _loop(decoder, settings, name, encode, batch_size, sequence_length):
    """A source, or prompts with padding on the left; whole sequences."""
    rules, limit = settings.rules[name], settings.max_new_tokens
    if encode:
        inputs, lengths = encode.inputs, encode.lengths
    else:
        inputs = (Tensor(TOKENS, (batch_size, sequence_length), "int32"),)
        lengths = {TOKENS: (1,)}
    if draws(rules):
        inputs = (*inputs, Tensor(UNIFORM, (batch_size, limit), "float32"))
        lengths = {**lengths, UNIFORM: ()}

    def call(tensors):
        given = _prompt(decoder, settings, tensors)
        rows = ops.shape(given["prompt"])[0]
        given["cache"] = cache.make(decoder.plan, rows, settings.max_length)
        given["number"] = limit
        given["uniform"] = ops.zeros((limit, rows), dtype="float32")
        if UNIFORM in tensors:
            given["uniform"] = ops.transpose(tensors[UNIFORM])
        if name == "beam":
            found = beam_search.search(decoder, rules, given)
            shape = (-1, rules.sampler.num_return_sequences, limit)
            return {"generated_ids": ops.reshape(found["ids"], shape), "scores": found["totals"]}
        return {"generated_ids": ops.reshape(loop.write(decoder, rules, given)["ids"], (-1, limit))}

    outputs = ("generated_ids", "scores") if name == "beam" else ("generated_ids",)
    return Endpoint(name, inputs, lengths, outputs, call)


def draws(rules):
    """Whether chance decides, and the caller gives the numbers."""
    return not isinstance(rules.sampler, (Greedy, Beam))


def _prompt(decoder, settings, tensors):
    """What the loops begin with: a prompt, and where its rows begin, or a source."""
    if not decoder.has_source:
        tokens = tensors[TOKENS]
        return {"prompt": tokens, "start": left_padding(tokens)}
    source = endpoints.pack(decoder.encoder, tensors)
    rows = ops.shape(next(iter(tensors.values())))[0]
    return {"prompt": ops.full((rows, 1), settings.begin_id, dtype="int32"), "source": source}


def left_padding(tokens):
    """How many zeros stand in front of each row of ids (B, T): int32 (B,)."""
    seen = ops.cumsum(ops.cast(ops.not_equal(tokens, 0), "int32"), axis=1)
    return ops.sum(ops.cast(ops.equal(seen, 0), "int32"), axis=1)
