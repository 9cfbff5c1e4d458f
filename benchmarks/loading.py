"""A checkpoint from its file to the first output: ours beside transformers and KerasHub.

Prints the CPU seconds of the load and a first forward pass of 16 tokens, those of the imports
before, and by how much anonymous memory grows to its peak, as the kernel counts it: pages of a
mapped file are not in it, copies of them are; *whole* is the ratio with the imports. Each load is a
process of its own, and the stacks take turns. Random weights, written by transformers: BERT-base in
float32, and a Llama of 0.32 billion in bfloat16 that is computed in float32. Needs the extras
backends and nlp.

    python benchmarks/loading.py [--rounds 5] [--checkpoints bert llama] [--stacks ...]
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
    """A folder as transformers writes it; prints how many numbers are in it."""
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
        given = {"token_ids": ids, "segment_ids": np.zeros_like(ids)} if name == "bert" else ids
        return model, keras.ops.convert_to_numpy(model(given))

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
        # Its tasks want a tokenizer: so the backbone alone, and the logits as they make them.
        kind = keras_hub.models.BertBackbone if name == "bert" else keras_hub.models.LlamaBackbone
        model = kind.from_preset(str(folder), dtype="float32")
        given = {"token_ids": ids, "padding_mask": np.ones_like(ids)}
        if name == "bert":
            given["segment_ids"] = np.zeros_like(ids)
            return model, keras.ops.convert_to_numpy(model(given)["sequence_output"])
        logits = model.token_embedding(model(given), reverse=True)
        return model, keras.ops.convert_to_numpy(logits)

    return run


STACKS = {"transformers": hugging_face, "keras_attention": keras_attention, "KerasHub": keras_hub}


def work(stack, name, folder):
    """In a process of its own: what came of it, by a line after the imports and one at the end."""
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
    """MB of anonymous memory of a process, as Linux counts it."""
    with open(f"/proc/{process.pid}/status") as file:
        line = next(line for line in file if line.startswith("RssAnon"))
    return int(line.split()[1]) * 1024 / 1e6


def load_once(stack, name, folder):
    """What `work` says, and by how many MB its process grew."""
    asked = ("--work", stack, name, str(folder))
    pipes = dict(stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    # Installed packages have bytecode beside them; a checkout has it where Python may write it.
    known = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    process = subprocess.Popen([sys.executable, __file__, *asked], text=True, env=known, **pipes)
    found = read_answer(process)
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
    return {**found, **answered[0], "megabytes": peak - before}


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
            found = {stack: [] for stack in stacks}
            for _ in range(rounds):
                for stack in stacks:
                    found[stack].append(load_once(stack, name, folder))
        print(f"\n{name}: {size:.0f} MB in float32, {rounds} rounds")
        print(f"  {'':16} {'CPU s':>6} {'ratio':>6}  spread        {'wall s':>6} {'imports':>8}"
              f" {'whole':>6} {'MB':>6} {'of float32':>10}  output")  # fmt: skip
        for stack, turns in found.items():
            pairs = [a["cpu"] / b["cpu"] for a, b in zip(turns, found[stacks[0]], strict=True)]
            cpu, wall, imports, most, total = (
                statistics.median(turn[field] for turn in turns)
                for field in ("cpu", "wall", "imports", "megabytes", "sum")
            )
            base, first = (
                statistics.median(turn[field] for turn in found[stacks[0]])
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
    given = parser.parse_args()
    if given.write:
        write_checkpoint(*given.write)
    elif given.work:
        work(*given.work)
    else:
        main(given.checkpoints, given.stacks, given.rounds)
