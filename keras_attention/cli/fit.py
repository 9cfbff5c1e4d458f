"""Training that can be interrupted: by Ctrl-C, a crash or a reboot."""

import keras

from keras_attention import training
from keras_attention.cli.backup import Backup
from keras_attention.cli.callbacks import Budget, KeepBest, Progress
from keras_attention.cli.errors import Interrupted


def fit(job, recipe, folder):
    """Trains `job.model` by `recipe`, or goes on where an earlier run in `folder` stopped.

    The state is kept after each epoch (`Backup`), so an interruption costs one epoch at most. At
    the end the model has the weights of the best epoch on the development set.

    Returns:
        (the best score, the epoch it was reached in), and the list of all epochs' numbers.
    """
    compile_model(job, recipe)
    best = KeepBest(folder.best, f"val_{job.monitor}", job.lower_is_better)
    progress = Progress(folder.history, recipe.epochs, best, [make().name for make in job.metrics])
    budget = Budget(recipe.minutes, progress.history)
    averages = [] if recipe.average is None else [keras.callbacks.SwapEMAWeights()]
    try:
        job.model.fit(
            job.train,
            validation_data=job.dev,
            epochs=0 if budget.used_up else recipe.epochs,
            callbacks=[*averages, best, Backup(folder.backup), progress, budget],
            shuffle=False,  # the data does that itself
            verbose=0,
        )
    except KeyboardInterrupt:
        raise Interrupted(
            f"interrupted after {len(progress.history)} of {recipe.epochs} epochs, which are kept "
            f"in {folder.path}: run the same command again to go on."
        ) from None
    finally:
        progress.close()
    job.model.load_weights(folder.best)
    return (best.score, best.epoch), progress.history


def _averaging(job, recipe):
    """Keywords of an optimizer that keeps the running average of the weights, if one is wanted."""
    if recipe.average is None:
        return {}
    return {"use_ema": True, "ema_momentum": 1 - 1 / max(1.0, recipe.average * len(job.train))}


def compile_model(job, recipe):
    """Compiles with AdamW, warm-up and a cosine, and the masked loss."""
    total = max(2, len(job.train) * recipe.epochs)
    schedule = training.warmup_cosine(
        recipe.learning_rate, warmup_steps=int(total * recipe.warmup), total_steps=total
    )
    optimizer = keras.optimizers.AdamW(
        schedule,
        weight_decay=recipe.weight_decay,
        global_clipnorm=recipe.clip_norm,
        **_averaging(job, recipe),
    )
    # Biases and norms are not pulled towards zero.
    optimizer.exclude_from_weight_decay(var_names=["bias", "gamma", "beta", "scale"])
    loss = training.MaskedSparseCategoricalCrossentropy(label_smoothing=recipe.label_smoothing)
    job.model.compile(
        optimizer,
        loss,
        metrics=[make() for make in job.metrics],
        jit_compile=recipe.jit_compile,
    )
