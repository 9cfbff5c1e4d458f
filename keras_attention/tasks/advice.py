"""`advise`: says when a training ended far from done, and which option helps."""

LEAST_GAIN = 0.01  # of a score from 0 to 1, in the last quarter of the epochs
LEAST_GAP = 0.05  # between the scores on the development and on the training part
DONE = 0.95  # a training score from which more epochs hardly help


def advise(job, recipe, history):
    """Return a sentence that names the option which would have helped, or None.

    - The minutes were over before the epochs, and the score still rose: more minutes.
    - The training score is far below the development score: less dropout, which acts in training
      only.
    - The score still rose when the last epoch ended: more epochs.

    Args:
        job: the `Job` that was trained.
        recipe: its `Recipe`.
        history: list of the numbers of each epoch.
    """
    name, epochs = job.monitor, len(history)
    if not history or name not in history[-1]:
        return None
    sign = -1 if job.lower_is_better else 1
    dev = [sign * epoch[f"val_{name}"] for epoch in history]
    before = dev[: -max(1, epochs // 4)]
    rose = bool(before) and dev[-1] == max(dev) and dev[-1] - max(before) > LEAST_GAIN
    if recipe.minutes is not None and epochs < recipe.epochs and (rose or epochs == 1):
        return (
            f"The minutes were over in epoch {epochs} of {recipe.epochs}, while {name} still "
            f"improved: give more with minutes=."
        )
    train = history[-1][name]
    if job.lower_is_better or not 0 <= train <= 1:
        return None
    if dev[-1] - train > LEAST_GAP and train < DONE and recipe.model.get("dropout"):
        return (
            f"{name} is {train:.1%} on the training part, far below {dev[-1]:.1%} on the "
            f"development part: dropout slows the training down. Build a model with less than "
            f"{recipe.model['dropout']:g} with dropout=, or train longer with "
            f"epochs=."
        )
    if rose and train < DONE:
        return f"{name} still improved in the last of {epochs} epochs: train longer with epochs=."
    return None
