"""A character language model of Shakespeare, compared with nanoGPT's recipe in PyTorch.

    python benchmarks/shakespeare.py

The recipe is nanoGPT's for a CPU (README, "I only have a macbook"): 4 layers, 4 heads, width 128,
context 64, batches of 12, 2,000 iterations, no dropout. nanoGPT reports a validation loss of 1.88.
Our model has the same size, rotary positions and twice the learning rate. Its iterations are slower
but it needs fewer, so the losses are compared after the same time. Each stack trains in its own
process, in five turns, and then computes the loss on the last tenth of the text. Needs the extras
data and torch.
"""

import argparse
import math
import os
import pathlib

import numpy as np
import workers

CONTEXT, BATCH, WIDTH, LAYERS, HEADS = 64, 12, 128, 4, 4
PEAK, LOWEST, WARMUP = 1e-3, 1e-4, 100
ITERATIONS, TURNS = {"keras_attention": 900, "PyTorch": 2000}, 5


def text():
    """Read the text from the file or TFDS, and return the ids (L,) and the vocabulary size."""
    folder = os.environ.get("KERAS_ATTENTION_DATA")
    path = pathlib.Path(folder or "") / "lm-tiny-shakespeare" / "input.txt"
    if folder and path.exists():
        whole = path.read_text("utf-8")
    else:
        import tensorflow_datasets as tfds

        parts = tfds.load("tiny_shakespeare")
        texts = [next(iter(parts[name]))["text"] for name in ("train", "validation", "test")]
        whole = b"".join(text.numpy() for text in texts).decode()
    characters = sorted(set(whole))
    numbers = {character: 1 + i for i, character in enumerate(characters)}  # 0 is padding
    ids = np.array([numbers[character] for character in whole], "int32")
    return ids, len(characters) + 1


def batches(ids, seed=1):
    random = np.random.default_rng(seed)
    while True:
        starts = random.integers(0, len(ids) - CONTEXT, (BATCH, 1))
        windows = ids[starts + np.arange(CONTEXT + 1)]
        yield windows[:, :-1], windows[:, 1:]


def in_order(ids):
    """Return all windows of the validation text, in order: ids and labels, (windows, T) each."""
    count = (len(ids) - 1) // CONTEXT
    return ids[: count * CONTEXT].reshape(count, -1), ids[1 : count * CONTEXT + 1].reshape(
        count, -1
    )


def learning_rate(step, total):
    if step < WARMUP:
        return PEAK * (step + 1) / (WARMUP + 1)
    share = (step - WARMUP) / max(total - WARMUP, 1)
    return LOWEST + 0.5 * (1 + math.cos(math.pi * min(share, 1.0))) * (PEAK - LOWEST)


def with_keras(train, size, total):
    import keras
    import tensorflow as tf

    import keras_attention as ka

    keras.utils.set_random_seed(0)
    model = ka.models.causal_language_model(
        size,
        hidden_dim=WIDTH,
        dropout=0.0,
        encoder=ka.models.TransformerEncoder.of_size(
            LAYERS, HEADS, WIDTH, 4 * WIDTH, use_bias=False, position="rotary"
        ),
    )
    model.compile(
        keras.optimizers.AdamW(
            ka.training.warmup_cosine(2 * PEAK, warmup_steps=WARMUP, total_steps=total),
            weight_decay=0.1,
            beta_2=0.99,
            global_clipnorm=1.0,
        ),
        ka.training.MaskedSparseCategoricalCrossentropy(),
        steps_per_execution=20,
        jit_compile=True,  # takes a third less time for such a small model
    )
    shapes = (tf.TensorSpec((BATCH, CONTEXT), "int32"),) * 2
    stream = batches(train)  # continues from turn to turn
    data = tf.data.Dataset.from_generator(lambda: stream, output_signature=shapes).prefetch(20)

    def run(count):
        model.fit(data, steps_per_epoch=count, epochs=1, shuffle=False, verbose=0)

    def score(inputs, labels):
        return model.evaluate(inputs, labels, batch_size=128, verbose=0)

    return run, score, model.count_params()


def with_torch(train, size, total):
    import torch
    from torch import nn
    from torch.nn import functional

    torch.manual_seed(0)

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norms = nn.ModuleList(nn.LayerNorm(WIDTH, bias=False) for _ in range(2))
            self.attend = nn.Linear(WIDTH, 3 * WIDTH, bias=False)
            self.project = nn.Linear(WIDTH, WIDTH, bias=False)
            self.feed = nn.Sequential(
                nn.Linear(WIDTH, 4 * WIDTH, bias=False),
                nn.GELU(),
                nn.Linear(4 * WIDTH, WIDTH, bias=False),
            )

        def forward(self, x):
            shape = (*x.shape[:2], HEADS, WIDTH // HEADS)
            parts = self.attend(self.norms[0](x)).split(WIDTH, dim=2)
            q, k, v = (part.view(shape).transpose(1, 2) for part in parts)
            y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.project(y.transpose(1, 2).reshape(x.shape))
            return x + self.feed(self.norms[1](x))

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens, self.places = nn.Embedding(size, WIDTH), nn.Embedding(CONTEXT, WIDTH)
            self.blocks = nn.Sequential(*(Block() for _ in range(LAYERS)))
            self.norm = nn.LayerNorm(WIDTH, bias=False)
            for name, weight in self.named_parameters():
                if weight.dim() > 1:
                    last = name.endswith(("project.weight", "feed.2.weight"))
                    nn.init.normal_(weight, std=0.02 / math.sqrt(2 * LAYERS) if last else 0.02)

        def forward(self, ids, labels):
            x = self.tokens(ids) + self.places.weight[: ids.shape[1]]
            logits = self.norm(self.blocks(x)) @ self.tokens.weight.T
            return functional.cross_entropy(logits.flatten(0, 1), labels.flatten())

    model = Model()
    decayed = [weight for weight in model.parameters() if weight.dim() > 1]
    not_decayed = [weight for weight in model.parameters() if weight.dim() < 2]
    groups = [
        {"params": decayed, "weight_decay": 0.1},
        {"params": not_decayed, "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=PEAK, betas=(0.9, 0.99))
    data, done = batches(train), 0

    def tensors(*arrays):
        return [torch.from_numpy(array.astype("int64")) for array in arrays]

    def run(count):
        nonlocal done
        for _ in range(count):
            for group in optimizer.param_groups:
                group["lr"] = learning_rate(done, total)
            loss = model(*tensors(*next(data)))
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            done += 1

    def score(inputs, labels):
        with torch.no_grad():
            pieces = zip(np.array_split(inputs, 20), np.array_split(labels, 20), strict=True)
            losses = [(len(a), model(*tensors(a, b)).item()) for a, b in pieces]
        return sum(count * loss for count, loss in losses) / len(inputs)

    return run, score, sum(weight.numel() for weight in model.parameters())


STACKS = {"keras_attention": with_keras, "PyTorch": with_torch}


def work(stack):
    """Serve as the worker of a stack: train for one turn, or compute the score, on request."""
    total = ITERATIONS[stack]
    ids, size = text()
    train, validation = ids[: int(0.9 * len(ids))], ids[int(0.9 * len(ids)) :]
    run, score, parameters = STACKS[stack](train, size, total)

    def answer(line):
        if line == "score":
            return {"loss": score(*in_order(validation)), "parameters": parameters}
        run(total // TURNS)

    workers.serve(answer)


def main():
    stacks = {name: workers.Worker(__file__, "--stack", name) for name in STACKS}
    turns = workers.in_turn(stacks, "train", TURNS)
    print(f"batches of {BATCH} x {CONTEXT} characters, trained in {TURNS} turns")
    columns = f"{'parameters':>10} {'iterations':>10} {'loss':>7} {'seconds':>8} {'CPU s':>7}"
    print(f"  {'':16} {columns}")
    for name, stack in stacks.items():
        scored = stack.ask("score")
        wall, cpu = (sum(turn[field] for turn in turns[name]) for field in ("wall", "cpu"))
        print(
            f"  {name:16} {scored['parameters']:10,} {ITERATIONS[name]:10,} {scored['loss']:7.3f} "
            f"{wall:8.1f} {cpu:7.1f}"
        )
        stack.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--stack", choices=STACKS)
    arguments = parser.parse_args()
    work(arguments.stack) if arguments.stack else main()
