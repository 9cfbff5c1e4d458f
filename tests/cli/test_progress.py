"""The lines that `train` prints during the training."""

import time

from keras_attention.cli import printing
from keras_attention.cli.progress import EpochLines
from keras_attention.files.io import write_json
from keras_attention.tasks.run_state import find_note


def test_progress_describes_batches_and_time_within_an_epoch(tmp_path, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    lines = EpochLines(tmp_path / "best.weights.h5", 20, 350, ["accuracy"])
    now[0] += 1000
    lines.on_epoch_begin(4)
    now[0] += 12
    assert lines.describe() == "epoch 5/20: preparing the first batches, 0:12 elapsed"
    lines.on_train_batch_end(0)
    now[0] += 50
    lines.on_train_batch_end(100)
    assert lines.describe() == "epoch 5/20: batch 101 of 350, 1:02 elapsed, about 2:04 left"
    lines.on_test_begin()
    assert lines.describe() == "epoch 5/20: scoring the development part, 1:02 elapsed"


def test_epoch_line_marks_the_best_and_an_incomplete_epoch(tmp_path, capsys):
    path = tmp_path / "best.weights.h5"
    write_json(find_note(path), {"score": 0.5, "loss": 1.0, "epoch": 2})
    lines = EpochLines(path, 4, 6, ["accuracy", "perplexity"])
    logs = {"loss": 1.25, "accuracy": 0.75, "val_accuracy": 0.5, "val_perplexity": 3.5}
    for epoch, batches in ((1, 6), (2, 3)):
        lines.on_epoch_begin(epoch)
        lines.on_train_batch_end(batches - 1)
        lines.on_epoch_end(epoch, logs)
    shares = "loss 1.2500  accuracy: train 75.00 %, dev 50.00 %, perplexity 3.50"
    assert capsys.readouterr().out.splitlines() == [
        f"epoch   2/4  {shares}    0.0 s  best so far",
        f"epoch   3/4  {shares}    0.0 s  3 of 6 batches",
    ]


def test_long_work_is_reported(capsys, monkeypatch):
    monkeypatch.setattr(printing, "SILENCE", 0.02)
    with printing.keep_informed("counting sheep"):
        time.sleep(0.3)  # lines after 0.02, 0.06, 0.14 and 0.3 seconds
    lines = capsys.readouterr().err.splitlines()
    assert 2 <= len(lines) <= 4 and set(lines) == {"counting sheep: 0:00"}
    with printing.keep_informed("counting sheep"):
        pass
    assert capsys.readouterr().err == ""
