"""The endpoints of a model that generates, as functions of named tensors.

`encode` reads a source, `step` takes new tokens (of a prompt, or the last one) with the cache of
those before, `generate` and `beam` are whole loops. All call one `Decoder`.
"""

import dataclasses

from keras import ops

from keras_attention.export import backend
from keras_attention.export.checks.cases import make_batches, run_model
from keras_attention.export.checks.report import Tensor
from keras_attention.export.endpoint import (
    Endpoint,
    as_signature,
    from_signature,
    make_endpoint,
    pack_inputs,
    signature_dtype,
)
from keras_attention.export.generation.step_reader import INDEX, START, TOKENS
from keras_attention.generation import beam_search, cache, loop
from keras_attention.generation.samplers import Beam, Greedy

UNIFORM = "uniform"


def make_endpoints(plan):
    """All endpoints of a `GenerationPlan`, a list in the order in which they are called.

    A fixed length is that of sources, or of the prompts of a language model: `prefill` then takes
    as many tokens, and `step` one.
    """
    encode, layout = _make_encode(plan)
    length = plan.sequence_length
    lengths = {"step": None if length is None else 1}
    if length is not None and not plan.decoder.has_source:
        lengths = {"prefill": length, **lengths}
    steps = [_make_step(plan, layout, name, n) for name, n in lengths.items()]
    loops = [_make_loop(plan, name, encode) for name in plan.configs]
    return [*([encode] if encode else []), *steps, *loops]


def _make_encode(plan):
    """The endpoint (None for a language model), and the shapes of the cache, known as they are.

    Its outputs are the entries that depend on the source. One that is always zeros is left out
    where the caller knows its shape: runtimes lose outputs that are constants.
    """
    decoder = plan.decoder
    layout = decoder.cache_shapes(plan.max_length)
    if not decoder.has_source:
        return None, layout
    plain = make_endpoint(decoder.encoder, plan.batch_size, plan.sequence_length)

    def call(tensors):
        source = pack_inputs(decoder.encoder, tensors)
        rows = ops.shape(tensors[plain.inputs[0].name])[0]
        cache = decoder.start(rows, plan.max_length, source)
        return as_signature({name: cache[name] for name in encode.outputs})

    encode = dataclasses.replace(plain, name="encode", outputs=tuple(layout), call=call)
    tf = backend.import_tensorflow()  # traced, its shapes are known as far as inputs decide them
    specs = {t.name: tf.TensorSpec(t.shape, t.dtype) for t in encode.inputs}
    traced = tf.function(call, autograph=False).get_concrete_function(specs)
    for name, x in traced.structured_outputs.items():
        axes = zip(layout[name][0], x.shape[1:], strict=True)
        shape = tuple(known if axis is None else axis for axis, known in axes)
        layout[name] = shape, layout[name][1]
    zeros = _find_zeros(decoder, encode, traced)
    given = tuple(n for n, (shape, _) in layout.items() if n not in zeros or None in shape)
    encode = dataclasses.replace(encode, outputs=given, cache=given)
    return encode, layout


def _find_zeros(decoder, endpoint, traced):
    """Return the names of outputs that are zeros whatever the inputs are."""
    inputs = set(map(id, traced.inputs)) - set(map(id, traced.captured_inputs))
    inputs = {x.op for x in traced.inputs if id(x) in inputs}
    constant = [n for n, x in traced.structured_outputs.items() if not _depends_on(x.op, inputs)]
    if not constant:
        return set()
    found = run_model(endpoint, make_batches(decoder.encoder, endpoint)[0])
    return {name for name in constant if not found[name].any()}


_SHAPES_ALONE = {"Shape", "ShapeN", "Size", "Rank", "ZerosLike", "OnesLike"}


def _depends_on(op, inputs):
    """Whether an op of a graph computes with the numbers of `inputs`, not with their shapes."""
    waiting, seen = [op], set()
    while waiting:
        op = waiting.pop()
        if op in inputs:
            return True
        if op in seen or op.type in _SHAPES_ALONE:
            continue
        seen.add(op)
        waiting += [x.op for x in op.inputs]
    return False


def _make_step(plan, layout, name, length):
    """Return the endpoint from new tokens, an index and a cache to logits and the cache.

    Args:
        layout: dict, name of an entry of the cache -> shape without the batch, dtype in the model.
    """
    decoder, batch_size = plan.decoder, plan.batch_size
    cache = tuple(
        Tensor(name, (batch_size, *shape), signature_dtype(dtype))
        for name, (shape, dtype) in layout.items()
    )
    tokens = Tensor(TOKENS, (batch_size, length), "int32")
    inputs = (tokens, Tensor(INDEX, (), "int32"))
    if not decoder.has_source:
        inputs = (*inputs, Tensor(START, (batch_size,), "int32"))
    kept = tuple(tensor.name for tensor in cache if tensor.name not in decoder.source_names)

    def call(tensors):
        before = {name: from_signature(tensors[name], dtype) for name, (_, dtype) in layout.items()}
        if START in tensors:
            before[START] = tensors[START]
        logits, after = decoder.step(tensors[TOKENS], before, tensors[INDEX])
        return as_signature({"logits": logits, **{name: after[name] for name in kept}})

    names = tuple(tensor.name for tensor in cache)
    lengths = {tensor.name: () for tensor in (*inputs, *cache)} | {TOKENS: (1,)}
    return Endpoint(name, (*inputs, *cache), lengths, ("logits", *kept), call, names)


def _make_loop(plan, name, encode):
    """The endpoint from a source, or prompts with padding on the left, to whole sequences."""
    decoder, batch_size = plan.decoder, plan.batch_size
    config, limit = plan.configs[name], plan.max_new_tokens
    if encode:
        inputs, lengths = encode.inputs, encode.lengths
    else:
        inputs = (Tensor(TOKENS, (batch_size, plan.sequence_length), "int32"),)
        lengths = {TOKENS: (1,)}
        if plan.padding.id is None:
            inputs = (*inputs, Tensor(START, (batch_size,), "int32"))
            lengths = {**lengths, START: ()}
    if draws_tokens(config):
        inputs = (*inputs, Tensor(UNIFORM, (batch_size, limit), "float32"))
        lengths = {**lengths, UNIFORM: ()}

    def call(tensors):
        given = _make_prompt(plan, tensors)
        rows = ops.shape(given["prompt"])[0]
        given["cache"] = cache.make_empty_cache(decoder.cache_spec, rows, plan.max_length)
        given["number"] = limit
        given["uniform"] = ops.zeros((limit, rows), dtype="float32")
        if UNIFORM in tensors:
            given["uniform"] = ops.transpose(tensors[UNIFORM])
        if name == "beam":
            found = beam_search.search_beams(decoder, config, given)
            shape = (-1, config.sampler.num_return_sequences, limit)
            return {"generated_ids": ops.reshape(found["ids"], shape), "scores": found["totals"]}
        ids = loop.generate_tokens(decoder, config, given)["ids"]
        return {"generated_ids": ops.reshape(ids, (-1, limit))}

    outputs = ("generated_ids", "scores") if name == "beam" else ("generated_ids",)
    return Endpoint(name, inputs, lengths, outputs, call)


def draws_tokens(config):
    """Return whether tokens are drawn, by random numbers that the caller gives."""
    return not isinstance(config.sampler, (Greedy, Beam))


def _make_prompt(plan, tensors):
    """What the loops start from: a prompt, and where its rows begin, or a source."""
    decoder = plan.decoder
    if not decoder.has_source:
        tokens, start = tensors[TOKENS], tensors.get(START)
        if start is None:
            start = count_left_padding(tokens, plan.padding.id)
        return {"prompt": tokens, "start": start}
    source = pack_inputs(decoder.encoder, tensors)
    rows = ops.shape(next(iter(tensors.values())))[0]
    begin = ops.convert_to_tensor([plan.start_token_ids], dtype="int32")
    return {"prompt": begin + ops.zeros((rows, 1), dtype="int32"), "source": source}


def count_left_padding(tokens, padding):
    """How often the id `padding` stands in front of each row of ids (B, T): int32 (B,)."""
    seen = ops.cumsum(ops.cast(ops.not_equal(tokens, padding), "int32"), axis=1)
    return ops.sum(ops.cast(ops.equal(seen, 0), "int32"), axis=1)
