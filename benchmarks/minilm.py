"""MiniLM's real weights: outputs beside PyTorch, and what its LiteRT files keep and take.

Prints the largest difference of hidden states and the least cosine of embeddings on real sentences;
of each LiteRT file its size, cosines, and how often the nearest sentence is the same; the time of a
text of 16, 64 and 128 tokens beside PyTorch in float32 and with its dynamic int8, on one thread.

    python benchmarks/minilm.py CHECKPOINT SENTENCES [--files FOLDER]

CHECKPOINT is a folder with all-MiniLM-L6-v2 as Hugging Face has it, SENTENCES a file with one text
on each line: 234 are taken, and 100 others calibrate full int8. FOLDER keeps the LiteRT files, and
those that are there are not written again. Needs PyTorch and transformers (the extra `backends`).
"""

import argparse
import os
import pathlib
import tempfile
import warnings

os.environ["OMP_NUM_THREADS"] = "1"

import measure  # noqa: E402
import numpy as np  # noqa: E402

import keras_attention as ka  # noqa: E402

COUNT, CALIBRATING, LENGTHS, SECONDS = 234, 100, (16, 64, 128), 2.0
FILES = (None, "float16", "int8_weights", "int8")


def read_texts(path):
    """Sentences to compare, and others to calibrate with."""
    lines = [line.strip() for line in path.read_text("utf-8").splitlines()]
    texts = list(dict.fromkeys(line for line in lines if len(line.split()) > 4))
    return texts[:COUNT], texts[COUNT : COUNT + CALIBRATING]


def make_peers(checkpoint):
    """The original in PyTorch, in float32 and with its linear layers in int8."""
    import torch
    import transformers

    torch.set_num_threads(1)
    whole = transformers.AutoModel.from_pretrained(checkpoint).eval()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it has a successor outside of PyTorch
        small = torch.ao.quantization.quantize_dynamic(whole, {torch.nn.Linear}, dtype=torch.qint8)

    def run(network, ids):
        ids = torch.from_numpy(np.asarray(ids, "int64"))
        with torch.inference_mode():
            return network(ids, attention_mask=torch.ones_like(ids)).last_hidden_state.numpy()

    return {
        "PyTorch float32": lambda ids: run(whole, ids),
        "PyTorch dynamic int8": lambda ids: run(small, ids),
    }


def embed(hidden):
    """The mean of the tokens, of length 1."""
    vector = hidden[0].mean(0)
    return vector / np.linalg.norm(vector)


def nearest(vectors):
    scores = vectors @ vectors.T
    np.fill_diagonal(scores, -2)
    return scores.argmax(1)


def compare_vectors(found, expected):
    cosines = (found * expected).sum(1) / np.linalg.norm(found, axis=1)
    same = (nearest(found) == nearest(expected)).mean()
    return f"cosine min {cosines.min():.7f}, mean {cosines.mean():.7f}; same nearest {same:.3f}"


def write_files(model, folder, calibration):
    """{(quantization, length or None for a free one): path}; all fixed ones are of one text."""
    files = {}
    for kind in FILES:
        given = {"calibration": calibration} if kind == "int8" else {}
        for length in (None, *LENGTHS):
            path = files[kind, length] = folder / f"{kind}-{length}.tflite"
            shape = {} if length is None else {"batch_size": 1, "sequence_length": length}
            if not path.exists():
                ka.export.to_litert(model, path, quantization=kind, **given, **shape)
    return files


def make_runner(path, ids):
    """A function that runs a file on one thread."""
    from ai_edge_litert.interpreter import Interpreter

    run = Interpreter(str(path), num_threads=1).get_signature_runner()
    return lambda: run(token_ids=ids, segment_ids=np.zeros_like(ids))


def compare_outputs(texts, model, checkpoint, peers, tokenizer):
    """The vectors of the original, after a comparison with those of the model."""
    hidden = ka.pretrained.load(checkpoint, pooling=None)
    worst, expected, quantized, ours = 0.0, [], [], []
    for text in texts:
        inputs = tokenizer([text])
        theirs = peers["PyTorch float32"](inputs["token_ids"])
        worst = max(worst, float(np.abs(np.array(hidden(inputs)) - theirs).max()))
        expected.append(embed(theirs))
        quantized.append(embed(peers["PyTorch dynamic int8"](inputs["token_ids"])))
        ours.append(np.array(model(inputs))[0])
    expected = np.array(expected)
    print(f"{len(texts)} sentences: hidden states differ by {worst:.1e} at most; embeddings: "
          f"{compare_vectors(np.array(ours), expected)}")  # fmt: skip
    print(f"PyTorch dynamic int8: {compare_vectors(np.array(quantized), expected)}", flush=True)
    return expected


def main(checkpoint, sentences, folder):
    texts, others = read_texts(sentences)
    model, peers = ka.pretrained.load(checkpoint), make_peers(checkpoint)
    tokenizer = ka.pretrained.tokenizer(checkpoint)
    expected = compare_outputs(texts, model, checkpoint, peers, tokenizer)
    files = write_files(model, folder, [tokenizer([text]) for text in others])
    for kind in FILES:
        run, size = ka.export.load(files[kind, None]), files[kind, None].stat().st_size / 1e6
        found = np.array([next(iter(run(tokenizer([text])).values()))[0] for text in texts])
        print(f"LiteRT {kind or 'float32'}: {size:.1f} MB, {compare_vectors(found, expected)}",
              flush=True)  # fmt: skip
    for length in LENGTHS:
        ids = np.full((1, length), 2023, "int32")
        runs = {f"LiteRT {k or 'float32'}": make_runner(files[k, length], ids) for k in FILES}
        theirs = {name: lambda run=run, ids=ids: run(ids) for name, run in peers.items()}
        for base in peers:
            measure.compare(f"T = {length}, against {base}", {**runs, **theirs}, base, SECONDS)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkpoint", type=pathlib.Path)
    parser.add_argument("sentences", type=pathlib.Path)
    parser.add_argument("--files", type=pathlib.Path, metavar="FOLDER")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        main(given.checkpoint, given.sentences, given.files or pathlib.Path(temporary))
