"""Loading of a checkpoint up to the first output, compared with transformers and KerasHub.

    python benchmarks/loading.py [--rounds 5] [--checkpoints bert llama] [--stacks ...]

Prints the CPU seconds of loading with a first forward pass of 16 tokens, the CPU seconds of the
imports, and how much anonymous memory grows to its peak. (Pages of a mapped file do not count,
copies do.) *whole* is the ratio of CPU seconds including the imports. Each load runs in a new
process, and the stacks take turns. transformers writes the checkpoints with random weights:
BERT-base in float32, and a Llama of 0.32 billion parameters in bfloat16, which is loaded in
float32. Needs the extras backends and nlp.
"""

import argparse
import importlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time

LENGTH = 16
LLAMA = dict(
    vocab_size=32000,
    hidden_size=1024,
    num_hidden_layers=16,
    num_attention_heads=16,
    num_key_value_heads=8,
    intermediate_size=4096,
)


def write_checkpoint(name, folder):
    """Write a checkpoint with transformers, and print its number of parameters."""
    import torch
    import transformers

    torch.manual_seed(0)
    if name == "bert":
        model = transformers.BertModel(transformers.BertConfig())
    else:
        config = transformers.LlamaConfig(**LLAMA)
        model = transformers.LlamaForCausalLM(config).to(torch.bfloat16)
    model.save_pretrained(folder)
    print(json.dumps(sum(x.numel() for x in model.parameters())))


def keras_attention(name):
    import keras
    import numpy as np

    import keras_attention as ka

    importlib.import_module(f"keras_attention.pretrained.architectures.{name}")
    load = ka.pretrained.load

    def run(folder, ids):
        model = load(folder)
        inputs = {"token_ids": ids, "segment_ids": np.zeros_like(ids)} if name == "bert" else ids
        return model, keras.ops.convert_to_numpy(model(inputs))

    return run


def hugging_face(name):
    import torch
    import transformers

    kind = transformers.BertModel if name == "bert" else transformers.LlamaForCausalLM

    def run(folder, ids):
        model = kind.from_pretrained(folder, dtype=torch.float32)
        with torch.inference_mode():
            return model, model(torch.from_numpy(ids.astype("int64")))[0].numpy()

    return run


def keras_hub(name):
    import keras
    import keras_hub
    import numpy as np

    def run(folder, ids):
        # KerasHub's tasks require a tokenizer, so load the backbone and compute the logits.
        kind = keras_hub.models.BertBackbone if name == "bert" else keras_hub.models.LlamaBackbone
        model = kind.from_preset(str(folder), dtype="float32")
        inputs = {"token_ids": ids, "padding_mask": np.ones_like(ids)}
        if name == "bert":
            inputs["segment_ids"] = np.zeros_like(ids)
            return model, keras.ops.convert_to_numpy(model(inputs)["sequence_output"])
        logits = model.token_embedding(model(inputs), reverse=True)
        return model, keras.ops.convert_to_numpy(logits)

    return run


STACKS = {"transformers": hugging_face, "keras_attention": keras_attention, "KerasHub": keras_hub}


def work(stack, name, folder):
    """Load a checkpoint in this process. Print a line after the imports, and one at the end."""
    import numpy as np

    run = STACKS[stack](name)
    ids = np.random.default_rng(0).integers(1, 30000, (1, LENGTH)).astype("int32")
    print("@" + json.dumps({"imports": time.process_time()}), flush=True)
    sys.stdin.readline()
    wall, cpu = time.perf_counter(), time.process_time()
    model, output = run(folder, ids)
    took = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
    print("@" + json.dumps({**took, "sum": float(np.abs(output).sum())}), flush=True)
    sys.stdin.readline()
    del model


def read_anonymous(process):
    """Return the anonymous memory of a process in MB, from Linux."""
    with open(f"/proc/{process.pid}/status") as file:
        line = next(line for line in file if line.startswith("RssAnon"))
    return int(line.split()[1]) * 1024 / 1e6


def load_once(stack, name, folder):
    """Run `work` in a new process, and return its results and the growth of memory in MB."""
    asked = ("--work", stack, name, str(folder))
    pipes = dict(stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    # Let Python cache our bytecode, because installed packages have theirs cached, too.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    process = subprocess.Popen(
        [sys.executable, __file__, *asked], text=True, env=environment, **pipes
    )
    result = read_answer(process)
    before = peak = read_anonymous(process)
    answered = []
    reader = threading.Thread(target=lambda: answered.append(read_answer(process)))
    print(file=process.stdin, flush=True)
    reader.start()
    while reader.is_alive():
        peak = max(peak, read_anonymous(process))
        time.sleep(0.002)
    process.stdin.close()
    process.wait()
    return {**result, **answered[0], "megabytes": peak - before}


def read_answer(process):
    for line in process.stdout:
        if line.startswith("@"):
            return json.loads(line[1:])
    raise RuntimeError(f"{' '.join(process.args[2:])} stopped: run it by itself to see why")


def main(names, stacks, rounds):
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, __file__, "--write", name, folder]
            written = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
            size = 4 * int(written.stdout.splitlines()[-1]) / 1e6
            result = {stack: [] for stack in stacks}
            for _ in range(rounds):
                for stack in stacks:
                    result[stack].append(load_once(stack, name, folder))
        print(f"\n{name}: {size:.0f} MB in float32, {rounds} rounds")
        print(f"  {'':16} {'CPU s':>6} {'ratio':>6}  spread        {'wall s':>6} {'imports':>8}"
              f" {'whole':>6} {'MB':>6} {'of float32':>10}  output")  # fmt: skip
        for stack, turns in result.items():
            pairs = [a["cpu"] / b["cpu"] for a, b in zip(turns, result[stacks[0]], strict=True)]
            cpu, wall, imports, most, total = (
                statistics.median(turn[field] for turn in turns)
                for field in ("cpu", "wall", "imports", "megabytes", "sum")
            )
            base, first = (
                statistics.median(turn[field] for turn in result[stacks[0]])
                for field in ("cpu", "imports")
            )
            whole = (cpu + imports) / (base + first)
            print(f"  {stack:16} {cpu:6.2f} {cpu / base:6.2f}  {min(pairs):.2f} to {max(pairs):.2f}"
                  f"  {wall:6.2f} {imports:8.2f} {whole:6.2f} {most:6.0f} {most / size:10.2f}"
                  f"  {total:.4e}", flush=True)  # fmt: skip


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--checkpoints", nargs="+", default=["bert", "llama"])
    parser.add_argument("--stacks", nargs="+", choices=STACKS, default=list(STACKS))
    parser.add_argument("--write", nargs=2, metavar=("NAME", "FOLDER"))
    parser.add_argument("--work", nargs=3, metavar=("STACK", "NAME", "FOLDER"))
    arguments = parser.parse_args()
    if arguments.write:
        write_checkpoint(*arguments.write)
    elif arguments.work:
        work(*arguments.work)
    else:
        main(arguments.checkpoints, arguments.stacks, arguments.rounds)
