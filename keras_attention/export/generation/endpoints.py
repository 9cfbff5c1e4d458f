"""The endpoints of a model that generates text, as functions of named tensors.

`encode` reads a source. `step` reads new tokens, with the key-value cache of earlier tokens.
`generate` and `beam` generate whole sequences in a loop. All functions call the same `Decoder`.
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
    """Return a list of all `Endpoint`s of a `GenerationPlan`, in the order of their calls.

    For an encoder-decoder, a fixed `sequence_length` is the length of sources. For a language
    model, it is the number of prompt tokens that `prefill` reads, while `step` reads one token. An
    `Endpoint` is an exported function. `plan` has the model and the checked export settings.
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
    """Return the endpoint `encode` (None for a language model), and the shapes of the cache.

    The shapes are a dict from the name of a cache entry to (shape without the batch, dtype). The
    outputs of the endpoint are the entries of the cache that depend on the source. An entry that is
    always zero is left out if its shape is fixed, because runtimes lose constant outputs.
    """
    decoder = plan.decoder
    layout = decoder.cache_shapes(plan.max_length)
    if not decoder.has_source:
        return None, layout
    # `sequence_length` also applies to the decoder. The inputs of an image encoder have no length.
    has_free_axis = any(None in x.shape[1:] for x in decoder.encoder.inputs)
    length = plan.sequence_length if has_free_axis else None
    plain = make_endpoint(decoder.encoder, plan.batch_size, length)

    def call(tensors):
        source = pack_inputs(decoder.encoder, tensors)
        rows = ops.shape(tensors[plain.inputs[0].name])[0]
        cache = decoder.start(rows, plan.max_length, source)
        return as_signature({name: cache[name] for name in encode.outputs})

    encode = dataclasses.replace(plain, name="encode", outputs=tuple(layout), call=call)
    tf = backend.import_tensorflow()  # the trace has all shapes that follow from the inputs
    specs = {t.name: tf.TensorSpec(t.shape, t.dtype) for t in encode.inputs}
    traced = tf.function(call, autograph=False).get_concrete_function(specs)
    for name, x in traced.structured_outputs.items():
        axes = zip(layout[name][0], x.shape[1:], strict=True)
        shape = tuple(size if axis is None else axis for axis, size in axes)
        layout[name] = shape, layout[name][1]
    zeros = _find_zeros(decoder, encode, traced)
    outputs = tuple(n for n, (shape, _) in layout.items() if n not in zeros or None in shape)
    encode = dataclasses.replace(encode, outputs=outputs, cache=outputs)
    return encode, layout


def _find_zeros(decoder, endpoint, traced):
    """Return a set with the names of outputs of an `Endpoint` that are zero for all inputs.

    `traced` is the TensorFlow function that the endpoint was traced to.
    """
    inputs = set(map(id, traced.inputs)) - set(map(id, traced.captured_inputs))
    inputs = {x.op for x in traced.inputs if id(x) in inputs}
    constant = [n for n, x in traced.structured_outputs.items() if not _depends_on(x.op, inputs)]
    if not constant:
        return set()
    outputs = run_model(endpoint, make_batches(decoder.encoder, endpoint)[0])
    return {name for name in constant if not outputs[name].any()}


_SHAPE_OPS = {"Shape", "ShapeN", "Size", "Rank", "ZerosLike", "OnesLike"}


def _depends_on(op, inputs):
    """Return whether a result depends on the values of inputs, and not only on their shapes.

    `op` is the TensorFlow op of the result, and `inputs` is a set of placeholder ops.
    """
    waiting, seen = [op], set()
    while waiting:
        op = waiting.pop()
        if op in inputs:
            return True
        if op in seen or op.type in _SHAPE_OPS:
            continue
        seen.add(op)
        waiting += [x.op for x in op.inputs]
    return False


def _make_step(plan, layout, name, length):
    """Return the endpoint `step` or `prefill`, which reads new tokens with the cache.

    Its inputs are tokens, the index of the first token and the cache. Its outputs are logits and
    the entries of the cache that change.

    Args:
        plan: `GenerationPlan`, which contains the model and its settings.
        layout: dict from the name of a cache entry to (shape without the batch, dtype in the
            model).
        name: str, `"step"` or `"prefill"`.
        length: int, the fixed number of tokens. None for any number.
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
    changing = tuple(tensor.name for tensor in cache if tensor.name not in decoder.source_names)

    def call(tensors):
        before = {name: from_signature(tensors[name], dtype) for name, (_, dtype) in layout.items()}
        if START in tensors:
            before[START] = tensors[START]
        logits, after = decoder.step(tensors[TOKENS], before, tensors[INDEX])
        return as_signature({"logits": logits, **{name: after[name] for name in changing}})

    names = tuple(tensor.name for tensor in cache)
    lengths = {tensor.name: () for tensor in (*inputs, *cache)} | {TOKENS: (1,)}
    return Endpoint(name, (*inputs, *cache), lengths, ("logits", *changing), call, names)


def _make_loop(plan, name, encode):
    """Return the endpoint called `name`, `generate` or `beam`, which generates whole sequences.

    Its input is a source, or for a language model prompts with left padding. `encode` is the
    endpoint `encode`, or None for a language model.
    """
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
        prompts = _make_prompt(plan, tensors)
        rows = ops.shape(prompts["prompt"])[0]
        prompts["cache"] = cache.make_empty_cache(decoder.cache_spec, rows, plan.max_length)
        prompts["number"] = limit
        prompts["uniform"] = ops.zeros((limit, rows), dtype="float32")
        if UNIFORM in tensors:
            prompts["uniform"] = ops.transpose(tensors[UNIFORM])
        if name == "beam":
            results = beam_search.search_beams(decoder, config, prompts)
            shape = (-1, config.sampler.num_return_sequences, limit)
            return {
                "generated_ids": ops.reshape(results["ids"], shape),
                "scores": results["totals"],
            }
        ids = loop.generate_tokens(decoder, config, prompts)["ids"]
        return {"generated_ids": ops.reshape(ids, (-1, limit))}

    outputs = ("generated_ids", "scores") if name == "beam" else ("generated_ids",)
    return Endpoint(name, inputs, lengths, outputs, call)


def draws_tokens(config):
    """Return whether generation samples at random, and needs random numbers as input.

    `config` is a `GenerationConfig`.
    """
    return not isinstance(config.sampler, (Greedy, Beam))


def _make_prompt(plan, tensors):
    """Convert the inputs of `generate` or `beam` to a dict of arguments of a generation loop.

    `tensors` is a dict of the inputs, and `plan` has the model and its settings. For a language
    model the dict has `prompt` and `start` (the position of the first token in each row). For an
    encoder-decoder it has `prompt` (the start tokens) and `source`.
    """
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
    """Count the padding ids at the start of each row of ids (B, T), and return int32 (B,).

    `tokens` are the ids, and `padding` is the padding id.
    """
    seen = ops.cumsum(ops.cast(ops.not_equal(tokens, padding), "int32"), axis=1)
    return ops.sum(ops.cast(ops.equal(seen, 0), "int32"), axis=1)
