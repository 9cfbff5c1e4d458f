"""Recipes of tasks that classify, label, parse or search text."""

from keras_attention.tasks.recipes.encoders import ConformerOfSize, RecurrentOfSize
from keras_attention.tasks.recipes.kinds import (
    LabelData,
    MatchingData,
    QuestionData,
    SentenceData,
    TaggedData,
    TextData,
    VectorData,
)
from keras_attention.tasks.recipes.recipe import Recipe, fine_tune, size

RECIPES = {
    # Chosen on held-out training examples from the datasets in benchmarks/text_classification.py.
    "text_classifier": Recipe(
        model=size(1, 4, 128, 256)
        | dict(dropout=0.3, embedding=dict(token_dropout=0.2), pooling="mean", bag_of_words=128),
        epochs=12,
        fewest_steps=2000,
        batch_size=32,
        learning_rate=2e-3,
        average=1.0,
        data=TextData(max_size=20_000),
        # On a CPU with a vocabulary of 9,000 words, a step takes four times as long with XLA.
        jit_compile=False,
    ),
    "text_classifier/pretrained": fine_tune(3, 32, 1e-4, LabelData()),
    "text_embedder": Recipe(
        model=size(2, 4, 128, 256)
        | dict(dropout=0.1, embedding=dict(token_dropout=0.1), pooling="mean"),
        epochs=12,
        fewest_steps=1000,
        batch_size=64,
        learning_rate=1e-3,
        label_smoothing=0.0,
        data=MatchingData(),
        jit_compile=False,  # as for text_classifier
    ),
    "text_embedder/pretrained": fine_tune(2, 64, 3e-5, VectorData()),
    # With this one wide layer, macro-F1 on the development split of GoEmotions is 0.501. With two
    # layers of width 128 it is 0.483.
    "multi_label_classifier": Recipe(
        model=size(1, 6, 384, 384)
        | dict(dropout=0.5, embedding=dict(token_dropout=0.1), pooling="attention"),
        epochs=5,
        batch_size=64,
        learning_rate=2e-3,
        label_smoothing=0.0,
        average=1.0,
        data=TextData(max_length=512),
        jit_compile=False,  # as for text_classifier
    ),
    "multi_label_classifier/pretrained": fine_tune(3, 32, 1e-4, LabelData()),
    # Convolutions and attention, as in QANet (Yu et al., 2018).
    "question_answerer": Recipe(
        model=size(3, 4, 128, 256)
        | dict(
            make_encoder=ConformerOfSize(5, "gelu"),
            position=["alibi", "relative_bias"],
            dropout=0.3,
            embedding=dict(token_dropout=0.1, characters=dict(filters=32)),
        ),
        epochs=15,
        batch_size=64,
        learning_rate=1.5e-3,
        label_smoothing=0.0,  # because positions outside the context are masked
        average=1.0,
        data=QuestionData(),
        jit_compile=False,  # as for text_classifier
    ),
    "question_answerer/pretrained": fine_tune(3, 32, 1e-4),
    "sequence_labeler": Recipe(
        model=size(3, 6, 192, 768)
        | dict(
            dropout=0.3, embedding=dict(token_dropout=0.25), position=["alibi", "relative_bias"]
        ),
        epochs=12,
        batch_size=32,
        learning_rate=1e-3,
        data=TaggedData(),
    ),
    "sequence_labeler/pretrained": fine_tune(4, 16, 3e-4, LabelData()),
    # Dozat and Manning's encoder, a little smaller.
    "dependency_parser": Recipe(
        model=dict(
            make_encoder=RecurrentOfSize("lstm"),
            num_layers=3,
            hidden_dim=640,
            dropout=0.33,
            embedding=dict(token_dropout=0.2, embedding_dim=160),
            arc_dim=400,
            label_dim=100,
        ),
        epochs=24,
        batch_size=32,
        learning_rate=2e-3,
        average=0.5,
        data=SentenceData(),
        jit_compile=False,  # because XLA would compile the loops again for every length
    ),
    "constituency_parser": Recipe(
        model=size(3, 6, 192, 768)
        | dict(
            num_decoder_layers=2,
            dropout=0.3,
            embedding=dict(token_dropout=0.2),
            position=["alibi", "relative_bias"],
        ),
        epochs=40,
        batch_size=32,
        learning_rate=1e-3,
        label_smoothing=0.0,  # because labels that are invalid at a position are masked
        average=1.0,
        data=SentenceData(max_length=128),
        jit_compile=False,
    ),
}
