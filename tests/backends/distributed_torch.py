"""One of several processes that train a model together. As a program it writes its weights.

python -m tests.backends.distributed_torch RANK PROCESSES FOLDER
"""

import pathlib
import sys

import keras
import numpy as np
import torch
from torch.nn.parallel import DistributedDataParallel

import keras_attention as ka

ROWS, LENGTH, VOCABULARY, LABELS = 6, 8, 12, 5
SIZE = dict(num_layers=1, num_heads=2, hidden_dim=8, intermediate_dim=16, dropout=0.0)


def draw_batch():
    """Return ids (6, 8). The rows of one process have one or two, the other rows nearly all."""
    ids = np.random.default_rng(0).integers(1, VOCABULARY, (ROWS, LENGTH)).astype("int32")
    for row, ids_of_row in enumerate(ids):
        ids_of_row[1 + row % 3 if row % 2 else LENGTH - row % 3 :] = 0
    return ids


def labeler(ids):
    model = ka.models.sequence_labeler(VOCABULARY, LABELS, **SIZE)
    labels = np.where(ids > 0, ids % LABELS, -1)
    loss = ka.training.MaskedSparseCategoricalCrossentropy(label_smoothing=0.1)
    return model, lambda x, y, logits: loss(y, logits), ids, labels


def weighted_sum(ids):
    model, _, ids, labels = labeler(ids)
    loss = ka.training.MaskedSparseCategoricalCrossentropy(reduction="sum")
    return model, lambda x, y, logits: 0.02 * loss(y, logits), ids, labels


def chunked_language_model(ids):
    model = ka.models.causal_language_model(VOCABULARY, tie_embeddings=False, **SIZE)
    fitted = ka.training.ChunkedLogits(model, chunk_size=6)
    loss = ka.training.MaskedSparseCategoricalCrossentropy(ignore_class=0)
    fitted.compile("sgd", loss)
    labels = np.pad(ids[:, 1:], ((0, 0), (0, 1)))
    return fitted, lambda x, y, hidden: fitted.compute_loss(x, y, hidden), ids, labels


def texts(ids):
    model = ka.models.text_classifier(VOCABULARY, LABELS, **SIZE)
    labels = np.stack([(ids == k).any(axis=1) for k in range(LABELS)], 1).astype("float32")
    loss = ka.training.MultiLabelCrossentropy()
    return model, lambda x, y, logits: loss(y, logits), ids, labels


CASES = {make.__name__: make for make in (labeler, weighted_sum, chunked_language_model, texts)}


def train(make, rank, processes):
    """Return the losses of three steps, a loss without gradient, and the weights at the end."""
    keras.utils.set_random_seed(0)
    model, compute_loss, x, y = make(draw_batch())
    x, y = (torch.from_numpy(each[rank::processes]) for each in (x, y))
    fitted = DistributedDataParallel(model) if processes > 1 else model
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    losses = []
    for _ in range(3):
        loss = compute_loss(x, y, fitted(x, training=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss))
    if rank == 0 and make is labeler:
        with torch.no_grad():  # a single process may evaluate: it does not wait
            losses.append(float(compute_loss(x[:2], y[:2], model(x[:2]))))
    return {
        "losses": np.array(losses),
        **{w.path: keras.ops.convert_to_numpy(w) for w in model.weights},
    }


def score(rank, processes):
    """Return the results of metrics. Each process counts its own rows."""
    keras.utils.set_random_seed(0)
    model, _, x, y = labeler(draw_batch())
    metrics = [
        ka.training.MaskedSparseCategoricalAccuracy(),
        ka.training.MaskedPerplexity(),
        ka.training.EntityF1(["O", "B-A", "I-A", "B-B", "I-B"]),
    ]
    with torch.no_grad():
        logits = model(x[rank::processes])
        for metric in metrics:
            metric.update_state(y[rank::processes], logits)
    ka.training.merge_metrics(metrics)
    return {metric.name: keras.ops.convert_to_numpy(metric.result()) for metric in metrics}


def work(rank, processes, folder):
    for name, make in CASES.items():
        np.savez(folder / f"{name}-{rank}.npz", **train(make, rank, processes))
    np.savez(folder / f"scores-{rank}.npz", **score(rank, processes))


if __name__ == "__main__":
    rank, processes, folder = int(sys.argv[1]), int(sys.argv[2]), pathlib.Path(sys.argv[3])
    if processes > 1:
        meeting = f"file://{folder / 'meeting'}"
        options = dict(init_method=meeting, rank=rank, world_size=processes)
        torch.distributed.init_process_group("gloo", **options)
    work(rank, processes, folder)
