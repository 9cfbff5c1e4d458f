"""Recipes of tasks that read texts: classes, labels of words, trees, answers."""

from keras_attention.tasks.recipes.recipe import Recipe, fine_tuned

# Words, and the characters of each.
SPELLED = dict(characters=True, min_count=2, lowercase=True, word_length=16)

RECIPES = {
    # Chosen on held-out training texts of the sets in benchmarks/text_classification.py.
    "text_classifier": Recipe(
        model=dict(
            num_layers=1,
            num_heads=4,
            hidden_dim=128,
            intermediate_dim=256,
            dropout=0.3,
            token_dropout=0.2,
            pooling="mean",
            bag_of_words=128,
        ),
        epochs=12,
        fewest_steps=2000,
        batch_size=32,
        learning_rate=2e-3,
        average=1.0,
        data=dict(min_count=2, max_size=20_000, lowercase=True, maximum_length=256, balance=0.0),
        # Measured on a CPU, with a table of 9,000 words: a step with XLA takes four times as long.
        jit_compile=False,
    ),
    "text_classifier/pretrained": fine_tuned(
        epochs=3,
        batch_size=32,
        learning_rate=1e-4,
        data=dict(balance=0.0),
    ),
    # One wide layer: of GoEmotions' development part macro-F1 0.501, of two of 128 0.483.
    "multi_label_classifier": Recipe(
        model=dict(
            num_layers=1,
            num_heads=6,
            hidden_dim=384,
            intermediate_dim=384,
            dropout=0.5,
            token_dropout=0.1,
            pooling="attention",
        ),
        epochs=5,
        batch_size=64,
        learning_rate=2e-3,
        label_smoothing=0.0,
        average=1.0,
        data=dict(min_count=2, lowercase=True, maximum_length=512, balance=0.0),
        jit_compile=False,  # as for text_classifier
    ),
    "multi_label_classifier/pretrained": fine_tuned(
        epochs=3,
        batch_size=32,
        learning_rate=1e-4,
        data=dict(balance=0.0),
    ),
    # Convolutions and attention, as in QANet (Yu et al., 2018).
    "question_answerer": Recipe(
        model=dict(
            block="conformer",
            kernel_size=5,
            num_layers=3,
            num_heads=4,
            hidden_dim=128,
            intermediate_dim=256,
            dropout=0.3,
            token_dropout=0.1,
            character_filters=32,
            position=["alibi", "relative_bias"],
        ),
        epochs=15,
        batch_size=64,
        learning_rate=1.5e-3,
        label_smoothing=0.0,  # the logits of places that cannot be are no part of it
        average=1.0,
        data=dict(
            characters=True,
            min_count=2,
            lowercase=True,
            word_length=12,
            maximum_length=384,
            maximum_question=64,
            maximum_answer=30,
            stride=128,
        ),
        jit_compile=False,  # as for text_classifier
    ),
    "question_answerer/pretrained": fine_tuned(
        epochs=3,
        batch_size=32,
        learning_rate=1e-4,
    ),
    "sequence_labeler": Recipe(
        model=dict(
            num_layers=3,
            num_heads=6,
            hidden_dim=192,
            intermediate_dim=768,
            dropout=0.3,
            token_dropout=0.25,
            position=["alibi", "relative_bias"],
        ),
        epochs=12,
        batch_size=32,
        learning_rate=1e-3,
        data=SPELLED | dict(maximum_length=512, balance=0.0),
    ),
    "sequence_labeler/pretrained": fine_tuned(
        epochs=4,
        batch_size=16,
        learning_rate=3e-4,
        data=dict(balance=0.0),
    ),
    # Dozat and Manning's encoder, a little smaller.
    "dependency_parser": Recipe(
        model=dict(
            block="lstm",
            num_layers=3,
            num_heads=8,  # of block="encoder", should it be asked for
            hidden_dim=640,
            embedding_dim=160,
            dropout=0.33,
            token_dropout=0.2,
            arc_dim=400,
            label_dim=100,
        ),
        epochs=24,
        batch_size=32,
        learning_rate=2e-3,
        average=0.5,
        data=SPELLED | dict(maximum_length=512),
        jit_compile=False,  # it would compile the loops again for every length
    ),
    "constituency_parser": Recipe(
        model=dict(
            num_layers=3,
            num_decoder_layers=2,
            num_heads=6,
            hidden_dim=192,
            intermediate_dim=768,
            dropout=0.3,
            token_dropout=0.2,
            position=["alibi", "relative_bias"],
        ),
        epochs=40,
        batch_size=32,
        learning_rate=1e-3,
        label_smoothing=0.0,  # the logits of what may not come are no part of it
        average=1.0,
        data=SPELLED | dict(maximum_length=128),
        jit_compile=False,
    ),
}
