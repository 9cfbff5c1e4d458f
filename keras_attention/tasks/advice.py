"""`advise`: says when a training ended far from done, and which option helps."""

LEAST_GAIN = 0.01  # of a score from 0 to 1, in the last quarter of the epochs
LEAST_GAP = 0.05  # between the scores on the development and on the training part
DONE = 0.95  # a training score from which more epochs hardly help


def advise(job, recipe, history, format_option):
    """Return a sentence that names the option which would have helped, or None.

    - The minutes were over before the epochs, and the score still rose: more minutes.
    - The training score is far below the development score: less dropout, which acts in training
      only.
    - The score still rose when the last epoch ended: more epochs.

    Args:
        job: the `Job` that was trained.
        recipe: its `Recipe`.
        history: list of the numbers of each epoch.
        format_option: function of the name of an option -> how a user writes it.
    """
    name, epochs = job.monitor, len(history)
    if not history or name not in history[-1]:
        return None
    sign = -1 if job.lower_is_better else 1
    dev = [sign * epoch[f"val_{name}"] for epoch in history]
    rose = _rose(dev)
    if recipe.minutes is not None and epochs < recipe.epochs and (rose or epochs == 1):
        return (
            f"The minutes were over in epoch {epochs} of {recipe.epochs}, while {name} still "
            f"improved: give more with {format_option('minutes')}."
        )
    train = history[-1][name]
    if job.lower_is_better or not 0 <= train <= 1:
        return None
    if dev[-1] - train > LEAST_GAP and train < DONE and recipe.model.get("dropout"):
        return (
            f"{name} is {train:.1%} on the training part, far below {dev[-1]:.1%} on the "
            f"development part: dropout slows the training down. Build a model with less than "
            f"{recipe.model['dropout']:g} with {format_option('dropout')}, or train longer with "
            f"{format_option('epochs')}."
        )
    if rose and train < DONE:
        return (
            f"{name} still improved in the last of {epochs} epochs: train longer with "
            f"{format_option('epochs')}."
        )
    return None


def _rose(scores):
    """Whether the last score is the best, and above those before the last quarter of them."""
    before = scores[: -max(1, len(scores) // 4)]
    return bool(before) and scores[-1] == max(scores) and scores[-1] - max(before) > LEAST_GAIN
