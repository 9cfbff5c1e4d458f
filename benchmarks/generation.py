"""Text generation with a model of GPT-2's size, compared with KerasHub, Hugging Face and llama.cpp.

    python benchmarks/generation.py [--rounds 5] [--new 64] [--stacks keras_attention KerasHub ...]

Random weights, batch 1, greedy, a prompt of 32 tokens, 64 new tokens (or `--new`), on a CPU. Every
stack reads all weights once per token. The last column is the share of the memory bandwidth, which
is measured in the same run by multiplying one row with a large matrix. Needs the extras backends
and nlp, and the packages gguf and llama-cpp-python.
"""

import argparse
import os
import pathlib
import statistics
import tempfile

import numpy as np
import workers

PROMPT, VOCABULARY = 32, 50257
SHAPE = dict(num_layers=12, num_heads=12, hidden_dim=768, intermediate_dim=3072)


def prompt():
    return np.random.default_rng(0).integers(1, VOCABULARY, (1, PROMPT)).astype("int32")


def our_model():
    import keras_attention as ka

    size = ka.models.sizes("causal_language_model")["GPT-2"]
    return ka.models.causal_language_model(VOCABULARY, **size)


def keras_attention(new):
    import keras_attention as ka

    model, ids = our_model(), prompt()
    return lambda: ka.generation.generate(model, ids, new)


def keras_hub(new):
    import keras_hub

    backbone = keras_hub.models.GPT2Backbone(
        vocabulary_size=VOCABULARY, max_sequence_length=1024, dropout=0.0, **SHAPE
    )
    model = keras_hub.models.GPT2CausalLM(backbone=backbone, preprocessor=None)
    model.compile(sampler="greedy")
    ids = np.zeros((1, PROMPT + new), "int32")
    ids[:, :PROMPT] = prompt()
    inputs = {"token_ids": ids, "padding_mask": np.arange(PROMPT + new)[None] < PROMPT}
    return lambda: model.generate(inputs, stop_token_ids=None)


def hugging_face(new, quantized=False):
    import torch
    import transformers

    torch.set_num_threads(os.cpu_count())
    config = transformers.GPT2Config()
    model = transformers.GPT2LMHeadModel(config).eval()
    if quantized:
        # PyTorch does not quantize the Conv1D layers of GPT-2 in transformers.
        for module in list(model.modules()):
            for name, child in list(module.named_children()):
                if isinstance(child, transformers.pytorch_utils.Conv1D):
                    linear = torch.nn.Linear(child.weight.shape[0], child.nf)
                    linear.weight.data, linear.bias.data = child.weight.T.contiguous(), child.bias
                    setattr(module, name, linear)
        model = torch.ao.quantization.quantize_dynamic(model, {torch.nn.Linear}, dtype=torch.qint8)
    ids = torch.from_numpy(prompt().astype("int64"))
    options = dict(max_new_tokens=new, min_new_tokens=new, do_sample=False, pad_token_id=0)

    def run():
        with torch.no_grad():
            return model.generate(ids, attention_mask=torch.ones_like(ids), **options).numpy()

    return run


def litert(new, quantization, num_threads):
    from ai_edge_litert.interpreter import Interpreter

    import keras_attention as ka

    folder = tempfile.TemporaryDirectory()
    path = pathlib.Path(folder.name) / "model.tflite"
    ka.export.to_litert(
        our_model(),
        path,
        quantization=quantization,
        generate=ka.export.Generation("greedy", PROMPT + new, new),
    )
    interpreter = Interpreter(str(path), num_threads=num_threads)
    run, ids = interpreter.get_signature_runner("generate"), prompt()
    interpreter.folder = folder  # keeps the folder until the interpreter is deleted
    return lambda: run(token_ids=ids)


def llama_cpp(new, kind):
    import gguf_file

    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "model.gguf"
        gguf_file.write_gguf(our_model(), path, kind, PROMPT + new)
        run, ids = gguf_file.open_gguf(path, PROMPT + new, os.cpu_count()), prompt()
        run(ids, 1)  # reads the file before it is deleted
    return lambda: run(ids, new)


STACKS = {
    "KerasHub": keras_hub,
    "Hugging Face": hugging_face,
    "keras_attention": keras_attention,
    "llama.cpp": lambda new: llama_cpp(new, "F32"),
    "Hugging Face, int8": lambda new: hugging_face(new, quantized=True),
    "llama.cpp, Q8_0": lambda new: llama_cpp(new, "Q8_0"),
    "keras_attention, LiteRT int8": lambda new: litert(new, "int8_weights", os.cpu_count()),
    "keras_attention, LiteRT int8, one thread": lambda new: litert(new, "int8_weights", 1),
    "llama.cpp, Q4_0": lambda new: llama_cpp(new, "Q4_0"),
    "keras_attention, LiteRT int4": lambda new: litert(new, "int4_weights", os.cpu_count()),
    "keras_attention, LiteRT int4, one thread": lambda new: litert(new, "int4_weights", 1),
}
# Bytes that a token reads: all weights but the positions. Blocks of 32 have a scale of two bytes.
TABLE, LAYERS = 50257 * 768, 12 * 12 * 768**2
BYTES = {name: 4 * (TABLE + LAYERS) for name in STACKS} | {
    "Hugging Face, int8": TABLE + LAYERS,
    "keras_attention, LiteRT int8": TABLE + LAYERS,
    "keras_attention, LiteRT int8, one thread": TABLE + LAYERS,
    "llama.cpp, Q8_0": (TABLE + LAYERS) * 34 / 32,
    "keras_attention, LiteRT int4": TABLE + LAYERS * 18 / 32,  # the table has 8 bits
    "keras_attention, LiteRT int4, one thread": TABLE + LAYERS * 18 / 32,
    "llama.cpp, Q4_0": (TABLE + LAYERS) * 18 / 32,
}


def bandwidth():
    """Return a function that multiplies one row with a large matrix, to measure the bandwidth."""
    import tensorflow as tf

    matrix, row = tf.ones((20_000, 6_000)), tf.ones((1, 20_000))
    product = tf.function(lambda: tf.matmul(row, matrix))
    return lambda: product().numpy()


def work(stack, new):
    run = bandwidth() if stack == "bandwidth" else STACKS[stack](new)
    workers.serve(lambda _: run() is None or None)


def main(names, rounds, new):
    asked = ("--new", str(new), "--stack")
    stacks = {name: workers.Worker(__file__, *asked, name) for name in [*names, "bandwidth"]}
    workers.in_turn(stacks, "warm", 2)
    turns = workers.in_turn(stacks, "run", rounds)
    ratios = workers.ratios(turns, names[0])
    rate = 20_000 * 6_000 * 4 / statistics.median(turn["wall"] for turn in turns["bandwidth"])
    print(f"{new} tokens after {PROMPT}; memory reads {rate / 1e9:.1f} GB/s")
    columns = f"{'tokens/s':>8} {'CPU s':>6} {'times':>6}  spread         of the memory's rate"
    print(f"  {'':42} {columns}")
    for name in names:
        wall, cpu = (
            statistics.median(turn[field] for turn in turns[name]) for field in ("wall", "cpu")
        )
        ratio, low, high = (1 / x for x in ratios[name])
        print(
            f"  {name:42} {new / wall:8.1f} {cpu:6.2f} {ratio:6.2f}  {high:.2f} to {low:.2f}"
            f"   {BYTES[name] * new / wall / rate:6.2f}"
        )
    for stack in stacks.values():
        stack.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--new", type=int, default=64, help="how many tokens to write")
    parser.add_argument("--stacks", nargs="+", choices=STACKS, default=list(STACKS))
    parser.add_argument("--stack", choices=[*STACKS, "bandwidth"])
    arguments = parser.parse_args()
    work(arguments.stack, arguments.new) if arguments.stack else main(
        arguments.stacks, arguments.rounds, arguments.new
    )
