"""Cards of presets."""

from keras_attention.export import card
from keras_attention.tasks import recipes
from keras_attention.training.scores.class_scores import ClassScores


def test_a_card_names_the_epoch_of_the_time_limit():
    whole = recipes.choose_recipe("text_classifier", options={"epochs": 26})
    timed = recipes.choose_recipe("text_classifier", options={"epochs": 26, "minutes": 2.0})
    scores = {"history": [{}] * 3}
    assert (
        card.describe_end(timed, scores)
        == " Training stopped in epoch 3, at its time limit of 2 minutes."
    )
    assert card.describe_end(timed, {"history": [{}] * 26}) == ""
    assert card.describe_end(whole, scores) == ""


def test_a_card_of_many_classes_names_the_lowest():
    numbers = {str(k): dict(precision=1.0, recall=1.0, f1=k / 60, count=1) for k in range(60)}
    text = card.write_classes(ClassScores({}, numbers))
    assert text.startswith("The 40 classes of 60 with the lowest F1:")
    assert "| 39 |" in text and "| 40 |" not in text
