"""The tables of recipes, and the functions that change them."""

import dataclasses

import pytest

import keras_attention as ka
from keras_attention.tasks import recipes, training
from keras_attention.tasks.registry import get_builder
from tests.grids import quick


def test_heads_divide_the_width_of_every_recipe():
    models = {name: recipe.model for name, recipe in recipes.RECIPES.items()}
    models = {name: m for name, m in models.items() if {"num_heads", "hidden_dim"} <= set(m)}
    assert len(models) > 8
    assert not [name for name, m in models.items() if m["hidden_dim"] % m["num_heads"]]


def test_data_set_may_have_its_own_recipe():
    general = recipes.choose_recipe("vision_transformer", "cifar10")
    assert general == recipes.RECIPES["vision_transformer"]
    assert recipes.choose_recipe("vision_transformer", "digits") != general


def test_options_replace_single_numbers():
    options = {"epochs": 2, "num_layers": 1, "num_heads": 3, "dropout": 0.5, "seed": None}
    plain = recipes.choose_recipe("sequence_labeler")
    recipe = recipes.choose_recipe("sequence_labeler", None, options | {"max_length": 9})
    assert recipe.epochs == 2 and recipe.seed == plain.seed
    assert recipe.model == plain.model | {"num_layers": 1, "num_heads": 3, "dropout": 0.5}
    assert recipe.data == dataclasses.replace(plain.data, max_length=9)
    assert recipes.RECIPES["sequence_labeler"] == plain  # the table is unchanged


def test_recordings_can_be_streamed_and_rare_labels_weigh_more():
    assert (
        recipes.choose_recipe("speech_recognizer", "files", {"chunk_size": 4}).model["chunk_size"]
        == 4
    )
    with pytest.raises(ValueError, match="chunk_size= does not apply to text_classifier"):
        recipes.choose_recipe("text_classifier", "files", {"chunk_size": 4})
    labels = "multi_label_classifier"
    assert recipes.choose_recipe(labels, "files", {"balance": 0.5}).data.balance == 0.5
    with pytest.raises(ValueError, match="balance= does not apply to dependency_parser"):
        recipes.choose_recipe("dependency_parser", "files", {"balance": 0.5})


def test_the_feed_forward_layers_grow_with_the_width():
    plain = recipes.choose_recipe("sequence_labeler").model
    half = recipes.choose_recipe(
        "sequence_labeler", None, {"hidden_dim": plain["hidden_dim"] // 2}
    ).model
    assert half["intermediate_dim"] * 2 == plain["intermediate_dim"]


def test_learned_queries_have_no_one_to_many_head_by_default():
    recipe = recipes.choose_recipe("object_detector")
    for options, expected in (
        ({}, True),
        ({"queries": "grid"}, True),
        ({"queries": 9}, None),
        ({"queries": 9, "one_to_many": True}, True),
    ):
        assert recipes.split_options(recipe, options).model.get("one_to_many") is expected


def test_learned_queries_have_no_rotary_positions():
    recipe = recipes.choose_recipe("object_detector")
    assert recipe.model["position"] == "rotary_2d"
    assert "position" not in recipes.split_options(recipe, {"queries": 9}).model
    changed = {"queries": 9, "position": "sinusoidal_2d"}
    assert recipes.split_options(recipe, changed).model["position"] == "sinusoidal_2d"


def test_every_number_of_a_recipe_counts_in_training_or_is_settled():
    """Check that `fit` refuses fields with `settled=True`."""
    settled = {
        *("beam", "characters", "crf", "image_size", "length_penalty", "lowercase", "max_length"),
        *("maximum_answer", "maximum_question", "max_size", "min_count", "num_levels", "score"),
        *("stride", "temperature", "tokens", "vocabulary_size", "window", "word_length"),
    }
    assert set(recipes.list_settled()) == settled
    with pytest.raises(ValueError, match="beam=2 is fixed when a model is built"):
        recipes.refuse_settled({"beam": 2})


def test_given_encoder_keeps_its_sizes():
    recipe, encoder = recipes.choose_recipe("question_answerer"), ka.models.RecurrentStack(1, 8)
    model = recipes.split_options(recipe, {"encoder": encoder, "hidden_dim": 8}).model
    assert not model.keys() & {"make_encoder", "num_layers", "num_heads", "intermediate_dim"}
    keywords = recipes.split_options(recipe, {"num_layers": 1}).list_keywords()
    assert keywords["encoder"].num_layers == 1 and "num_layers" not in keywords


def test_data_decide_whether_characters_are_used():
    recipe = recipes.choose_recipe("question_answerer")
    characters = {"vocabulary_size": 30, "word_length": 9}
    embedding = recipe.list_keywords(characters=characters, exact_match=True)["embedding"]
    assert embedding == ka.models.TextEmbedding(
        token_dropout=0.1, exact_match=True, characters=ka.models.Characters(30, 9, filters=32)
    )
    assert recipe.list_keywords(characters=None)["embedding"].characters is None
    changed = recipes.split_options(recipe, {"embedding": ka.models.TextEmbedding(scale=True)})
    numbers = changed.list_keywords(characters=characters)["embedding"]
    assert numbers.scale and numbers.characters == ka.models.Characters(30, 9)


@pytest.mark.parametrize("name", ["speech_recognizer", "speech_to_text"])
def test_another_encoder_drops_the_sizes_of_the_conformer(name):
    assert "kernel_size" in recipes.choose_recipe(name).model
    encoder = ka.models.TransformerEncoder.of_size(1, 2, 96, 32)
    recipe = recipes.split_options(
        recipes.choose_recipe(name), {"encoder": encoder, "embedding": {"num_mel_bins": 12}}
    )
    keywords = recipe.list_keywords(ka.models.SpeechEmbedding)
    assert keywords["embedding"].num_mel_bins == 12 and keywords["embedding"].filters == 32
    assert getattr(ka.models, get_builder(name))(50, **keywords).count_params() > 0


# Words, characters, images, boxes, sounds.
ONE_OF_A_KIND = (
    *("sequence_labeler", "vision_transformer", "image_generator"),
    *("object_detector", "speech_recognizer/spoken_digit"),
)


@pytest.mark.parametrize("name", quick(recipes.RECIPES, *ONE_OF_A_KIND))
def test_every_recipe_fits_its_builder(name):
    recipe = recipes.RECIPES[name]
    build = getattr(ka.models, get_builder(name.split("/")[0]))
    alone = ("question_answerer", "speech", "image_generator", "text_embedder")
    kinds = {
        **dict.fromkeys(("vision_transformer", "object_detector"), ka.models.ImageEmbedding),
        **dict.fromkeys(("image_to_sequence", "image_text_matcher"), ka.models.ImageEmbedding),
        **dict.fromkeys(("speech_recognizer", "speech_to_text"), ka.models.SpeechEmbedding),
    }
    keywords = recipe.list_keywords(kinds.get(name.split("/")[0]))
    if "language_model" in name or name.startswith(alone):
        model = build(50, **keywords)
    elif name == "constituency_parser":
        model = build(50, 5, 7, **keywords)
    elif name.startswith("image_text_matcher"):
        model = build(32, **keywords)
    elif not name.startswith("vision_transformer"):
        model = build(50, 5, **keywords)
    else:
        size = {"vision_transformer/digits": 8, "vision_transformer/pretrained": 32}.get(name, 28)
        model = ka.models.vision_transformer(size, 10, **keywords)
    assert model.count_params() > 0


@pytest.mark.slow
def test_few_examples_make_small_batches_by_default(monkeypatch):
    plain = recipes.choose_recipe("sequence_labeler")
    assert recipes.shrink_batches(plain, 10_000) == plain
    assert recipes.shrink_batches(plain, 640).batch_size == 20
    assert recipes.shrink_batches(plain, 3).batch_size == recipes.SMALLEST_BATCH
    windows = recipes.choose_recipe("causal_language_model")
    assert recipes.shrink_batches(windows, 3) == windows

    sentences = [ka.data.Sentence(("A", "cat"), ("DET", "NOUN"))] * 40
    monkeypatch.setattr(training, "train_model", lambda *a, **o: ((0.0, 1), []))
    task = ka.tasks.SequenceLabeler.from_data(sentences, num_layers=1, num_heads=1, hidden_dim=8)
    task.fit(sentences, epochs=1, verbose=False)
    assert task.recipe.batch_size == recipes.SMALLEST_BATCH
    task.fit(sentences, epochs=1, batch_size=36, verbose=False)
    assert task.recipe.batch_size == 36


def test_few_examples_make_more_epochs_but_not_more_than_four_times_as_many():
    plain = recipes.choose_recipe("sequence_labeler")
    assert plain.fewest_steps == 0 and recipes.add_epochs(plain, 10) == plain
    texts = dataclasses.replace(plain, epochs=10, batch_size=50, fewest_steps=1000)
    numbers = {count: recipes.add_epochs(texts, count).epochs for count in (50_000, 2_490, 100, 1)}
    assert numbers == {50_000: 10, 2_490: 20, 100: 40, 1: 40}
