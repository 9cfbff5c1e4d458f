"""MiniLM's real weights: outputs beside PyTorch, and what its LiteRT files keep and take.

Prints the largest difference of hidden states and the least cosine of embeddings on real sentences;
of the LiteRT file with int8 weights its size, cosines, how often the nearest sentence is the same,
and the time of a text, as a ratio of PyTorch's in the same run, one thread each, interleaved.

    python benchmarks/minilm.py CHECKPOINT SENTENCES

CHECKPOINT is a folder with all-MiniLM-L6-v2 as Hugging Face has it, SENTENCES a file with one text
on each line; 234 are taken. Needs PyTorch and transformers (the extra `backends`).
"""

import argparse
import os
import pathlib
import statistics
import tempfile
import time

os.environ["OMP_NUM_THREADS"] = "1"

import keras  # noqa: E402
import numpy as np  # noqa: E402

import keras_attention as ka  # noqa: E402

COUNT, LENGTHS, REPEATS = 234, (16, 64, 128), 15


def embed(hidden, mask):
    """The mean of the tokens, of length 1."""
    mask = mask[:, :, None]
    vectors = (hidden * mask).sum(1) / mask.sum(1)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def nearest(vectors):
    scores = vectors @ vectors.T
    np.fill_diagonal(scores, -2)
    return scores.argmax(1)


def measure(functions):
    """Median milliseconds of each function, called in turns, and the spread of the ratios."""
    times = {name: [] for name in functions}
    for run in functions.values():
        run()
    for _ in range(REPEATS):
        for name, run in functions.items():
            started = time.perf_counter()
            run()
            times[name].append(1000 * (time.perf_counter() - started))
    return times


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkpoint", type=pathlib.Path)
    parser.add_argument("sentences", type=pathlib.Path)
    given = parser.parse_args()
    import torch
    import transformers
    from ai_edge_litert.interpreter import Interpreter

    torch.set_num_threads(1)
    lines = given.sentences.read_text("utf-8").splitlines()
    texts = [line.strip() for line in lines if len(line.split()) > 4][:COUNT]
    model = ka.pretrained.load(given.checkpoint)
    tokenizer = ka.pretrained.tokenizer(given.checkpoint)
    theirs = transformers.AutoModel.from_pretrained(given.checkpoint).eval()
    small = torch.ao.quantization.quantize_dynamic(theirs, {torch.nn.Linear}, dtype=torch.qint8)
    hidden = keras.Model(model.input, model.get_layer("pooling").input)
    worst, ours, expected = 0.0, [], []
    for text in texts:
        inputs = tokenizer([text])
        ids = torch.tensor(inputs["token_ids"])
        with torch.no_grad():
            found = theirs(ids, attention_mask=torch.ones_like(ids)).last_hidden_state.numpy()
        worst = max(worst, float(np.abs(np.array(hidden(inputs)) - found).max()))
        expected.append(embed(found, np.ones(ids.shape))[0])
        ours.append(np.array(model(inputs))[0])
    ours, expected = np.array(ours), np.array(expected)
    print(f"{len(texts)} sentences: hidden states differ by {worst:.1e} at most; cosine of "
          f"embeddings at least {(ours * expected).sum(1).min():.7f}")  # fmt: skip
    with tempfile.TemporaryDirectory() as temporary:
        path = pathlib.Path(temporary) / "minilm.tflite"
        ka.export.to_litert(model, path, quantization="int8_weights")
        run = ka.export.load(path)
        found = np.array([next(iter(run(tokenizer([text])).values()))[0] for text in texts])
        cosines = (found * expected).sum(1)
        same = float((nearest(found) == nearest(expected)).mean())
        print(f"int8_weights: {path.stat().st_size / 1e6:.1f} MB, cosine min {cosines.min():.4f}, "
              f"mean {cosines.mean():.5f}; same nearest sentence {same:.3f}")  # fmt: skip
        for length in LENGTHS:
            one = pathlib.Path(temporary) / f"{length}.tflite"
            ka.export.to_litert(model, one, quantization="int8_weights", batch_size=1,
                                sequence_length=length)  # fmt: skip
            interpreter = Interpreter(str(one), num_threads=1)
            runner = interpreter.get_signature_runner()
            ids = np.full((1, length), 2023, "int32")
            tokens = torch.tensor(ids)
            mask = torch.ones_like(tokens)

            def call(network, tokens=tokens, mask=mask):
                with torch.no_grad():
                    network(tokens, attention_mask=mask)

            batch = {"token_ids": ids, "segment_ids": np.zeros_like(ids)}
            times = measure({
                "ours": lambda runner=runner, batch=batch: runner(**batch),
                "torch": lambda: call(theirs), "torch int8": lambda: call(small),
            })  # fmt: skip
            for peer in ("torch", "torch int8"):
                ratios = [a / b for a, b in zip(times["ours"], times[peer], strict=True)]
                low, middle, high = np.percentile(ratios, [25, 50, 75])
                print(f"T = {length}: {statistics.median(times['ours']):.1f} ms, of {peer} "
                      f"{middle:.2f} ({low:.2f} to {high:.2f})", flush=True)  # fmt: skip
