"""Recipes of tasks that see pictures, or draw them."""

from keras_attention.tasks.recipes.recipe import Recipe, fine_tuned

# A vision transformer on convolutions, which learns sooner from few pictures.
STEMMED = dict(
    patch_size=1,
    stem_filters=(32, 64, 128),
    num_layers=4,
    num_heads=4,
    hidden_dim=128,
    intermediate_dim=256,
    pooling="mean",
)

RECIPES = {
    "vision_transformer/pretrained": fine_tuned(
        epochs=3,
        batch_size=16,
        learning_rate=1e-4,
        data=dict(shift=0.0, flip=True, balance=0.0),
    ),
    "vision_transformer": Recipe(
        model=dict(
            patch_size=4,
            num_layers=4,
            num_heads=4,
            hidden_dim=96,
            intermediate_dim=192,
            dropout=0.1,
        ),
        epochs=20,
        batch_size=128,
        learning_rate=1e-3,
        data=dict(shift=0.08, flip=True, balance=0.0),
    ),
    # Of pictures in class folders, which are resized to 48 x 48.
    "vision_transformer/files": Recipe(
        model=STEMMED,
        epochs=30,
        batch_size=32,
        learning_rate=1e-3,
        data=dict(shift=0.08, flip=True, balance=0.0),
    ),
    "vision_transformer/fashion_mnist": Recipe(
        model=STEMMED,
        epochs=12,
        batch_size=128,
        learning_rate=1.5e-3,
        data=dict(shift=0.08, flip=True, balance=0.0),
    ),
    # Chosen by cross-validation on the training part alone.
    "vision_transformer/digits": Recipe(
        model=dict(
            patch_size=1,
            stem_filters=(32, 64),
            stem_strides=(1, 2),
            num_layers=2,
            num_heads=4,
            hidden_dim=64,
            intermediate_dim=128,
            pooling="mean",
        ),
        epochs=40,
        batch_size=32,
        learning_rate=2e-3,
        # Shifts by 0.72 pixels, rounded: half of the pictures move by one.
        data=dict(shift=0.09, flip=False, balance=0.0),
    ),
    # What `benchmarks/blood_cells.py` trains: a stem of stride 16, and a query in each cell.
    "object_detector": Recipe(
        model=dict(
            stem_filters=(32, 64, 128, 128),
            patch_size=1,
            num_layers=3,
            num_heads=4,
            hidden_dim=128,
            intermediate_dim=256,
            dropout=0.0,
            position="rotary_2d",  # cells see what is beside them, wherever that is
            one_to_many=True,
        ),
        epochs=120,
        batch_size=4,
        learning_rate=7e-4,
        weight_decay=0.01,
        label_smoothing=0.0,
        average=1.0,
        data=dict(
            image_size=320,
            flip=True,
            vertical_flip=True,
            crop=0.3,
            brightness=0.2,
            contrast=0.2,
        ),
        jit_compile=False,  # objects are matched to queries by SciPy
    ),
    "image_to_sequence": Recipe(
        model=dict(
            stem_filters=(32, 64, 128, 128),
            patch_size=1,
            num_layers=3,
            num_decoder_layers=2,
            num_heads=4,
            hidden_dim=192,
            intermediate_dim=384,
            dropout=0.1,
        ),
        epochs=30,
        batch_size=32,
        learning_rate=1e-3,
        data=dict(
            tokens="words",
            vocabulary_size=4000,
            maximum_length=None,
            image_size=192,
            beam=3,
            length_penalty=1.0,
            score="bleu",
        ),
    ),
    "image_generator": Recipe(
        model=dict(
            num_layers=4,
            num_heads=4,
            hidden_dim=128,
            intermediate_dim=512,
            dropout=0.2,
        ),
        epochs=40,
        batch_size=32,
        learning_rate=2e-3,
        weight_decay=0.1,
        label_smoothing=0.0,
        average=2.0,
        data=dict(num_levels=16, window=5, temperature=1.0),
    ),
    "image_generator/digits": Recipe(
        model=dict(
            num_layers=3,
            num_heads=4,
            hidden_dim=128,
            intermediate_dim=256,
            dropout=0.3,
        ),
        epochs=50,
        batch_size=32,
        learning_rate=2e-3,
        weight_decay=0.1,
        label_smoothing=0.0,
        average=2.0,
        data=dict(num_levels=17, window=4, temperature=1.0),
    ),
}
