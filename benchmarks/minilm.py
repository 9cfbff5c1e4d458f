"""MiniLM with its real weights: outputs compared with PyTorch, and size and time of LiteRT files.

    python benchmarks/minilm.py CHECKPOINT SENTENCES [--files FOLDER]

Prints the largest difference of hidden states from PyTorch's, and the smallest cosine similarity of
embeddings, on real sentences. For each LiteRT file it prints the size, cosine similarities, how
often the nearest sentence is the same, and the time for 16, 64 and 128 tokens on one thread,
compared with PyTorch in float32 and with dynamic int8.

CHECKPOINT is a folder with Hugging Face's all-MiniLM-L6-v2. SENTENCES is a file with one text per
line: 234 are compared, and 100 others calibrate full int8. The LiteRT files are written to FOLDER.
Files that already exist there are reused. Needs PyTorch and transformers (the extra `backends`).
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
    """Return two lists: sentences to compare, and sentences for calibration."""
    lines = [line.strip() for line in path.read_text("utf-8").splitlines()]
    texts = list(dict.fromkeys(line for line in lines if len(line.split()) > 4))
    return texts[:COUNT], texts[COUNT : COUNT + CALIBRATING]


def make_peers(checkpoint):
    """Return {name: function of ids} of the original model in PyTorch, in float32 and in int8."""
    import torch
    import transformers

    torch.set_num_threads(1)
    whole = transformers.AutoModel.from_pretrained(checkpoint).eval()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch warns that `quantize_dynamic` is deprecated
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
    """Average the hidden states over tokens, and normalize the result to length 1."""
    vector = hidden[0].mean(0)
    return vector / np.linalg.norm(vector)


def nearest(vectors):
    scores = vectors @ vectors.T
    np.fill_diagonal(scores, -2)
    return scores.argmax(1)


def compare_vectors(actual, expected):
    cosines = (actual * expected).sum(1) / np.linalg.norm(actual, axis=1)
    same = (nearest(actual) == nearest(expected)).mean()
    return f"cosine min {cosines.min():.7f}, mean {cosines.mean():.7f}; same nearest {same:.3f}"


def write_files(model, folder, calibration):
    """Export LiteRT files, and return {(quantization, length): path}.

    A length of None means dynamic shapes. Files with a fixed length have batch size 1.
    """
    files = {}
    for kind in FILES:
        options = {"calibration": calibration} if kind == "int8" else {}
        for length in (None, *LENGTHS):
            path = files[kind, length] = folder / f"{kind}-{length}.tflite"
            shape = {} if length is None else {"batch_size": 1, "sequence_length": length}
            if not path.exists():
                ka.export.to_litert(model, path, quantization=kind, **options, **shape)
    return files


def make_runner(path, ids):
    """Return a function that runs a LiteRT file on `ids` with one thread."""
    from ai_edge_litert.interpreter import Interpreter

    run = Interpreter(str(path), num_threads=1).get_signature_runner()
    return lambda: run(token_ids=ids, segment_ids=np.zeros_like(ids))


def compare_outputs(texts, model, checkpoint, peers, tokenizer):
    """Compare our embeddings with those of the original, and return the latter."""
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
    texts, calibration_texts = read_texts(sentences)
    model, peers = ka.pretrained.load(checkpoint), make_peers(checkpoint)
    tokenizer = ka.pretrained.tokenizer(checkpoint)
    expected = compare_outputs(texts, model, checkpoint, peers, tokenizer)
    files = write_files(model, folder, [tokenizer([text]) for text in calibration_texts])
    for kind in FILES:
        run, size = ka.export.load(files[kind, None]), files[kind, None].stat().st_size / 1e6
        actual = np.array([next(iter(run(tokenizer([text])).values()))[0] for text in texts])
        print(f"LiteRT {kind or 'float32'}: {size:.1f} MB, {compare_vectors(actual, expected)}",
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
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        main(arguments.checkpoint, arguments.sentences, arguments.files or pathlib.Path(temporary))
