"""The state of training after each epoch, whole or not there."""

import os
import pathlib
import shutil

import keras


class Backup(keras.callbacks.BackupAndRestore):
    """`keras.callbacks.BackupAndRestore` that survives being interrupted while it writes.

    Keras's own writes over the state it would have to go back to; Ctrl-C in that moment leaves a
    file that opens but lacks weights. Here every finished epoch has a folder of its own, made
    under another name and renamed, and the one before goes when the new one is there.

    Args:
        folder: where the states are kept.
    """

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.work = self.folder / "work"
        super().__init__(str(self.work), delete_checkpoint=False)

    def on_train_begin(self, logs=None):
        shutil.rmtree(self.work, ignore_errors=True)
        if states := self._states():
            shutil.copytree(states[-1], self.work)
        super().on_train_begin(logs)

    def on_epoch_end(self, epoch, logs=None):
        older = self._states()
        super().on_epoch_end(epoch, logs)
        unfinished = self.folder / "unfinished"
        shutil.rmtree(unfinished, ignore_errors=True)
        shutil.copytree(self.work, unfinished)
        os.replace(unfinished, self.folder / f"epoch-{epoch + 1:05}")
        for state in older:
            shutil.rmtree(state)

    def _states(self):
        return sorted(self.folder.glob("epoch-*"))
