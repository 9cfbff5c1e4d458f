"""Small models with every masked loss, and very unevenly padded data to train them on."""

import keras
import numpy as np

import keras_attention as ka

ROWS, LENGTH, VOCABULARY, LABELS = 15, 8, 12, 5
SIZE = dict(num_layers=1, num_heads=2, hidden_dim=8, intermediate_dim=16, dropout=0.0)
T = ka.training


def draw_tokens(seed=0, length=LENGTH):
    """Draw ids (15, 8): every second row has one or two tokens, the others nearly all."""
    rng = np.random.default_rng(seed)
    ids = rng.integers(1, VOCABULARY, (ROWS, length)).astype("int32")
    for row, ids_of_row in enumerate(ids):
        ids_of_row[1 + row % 3 if row % 2 else length - row % 3 :] = 0
    return ids


def mask_labels(labels, ids):
    return np.where(ids > 0, labels, -1).astype("int32")


def sequence_labeler():
    ids = draw_tokens()
    model = ka.models.sequence_labeler(VOCABULARY, LABELS, **SIZE)
    metrics = [T.MaskedSparseCategoricalAccuracy, T.MaskedSequenceAccuracy, T.MaskedPerplexity]
    loss = T.MaskedSparseCategoricalCrossentropy(label_smoothing=0.1)
    return model, loss, metrics, ids, mask_labels(ids % LABELS, ids)


def entities():
    """Make a case with weights of rows."""
    ids = draw_tokens()
    model = ka.models.sequence_labeler(VOCABULARY, LABELS, **SIZE)
    tags = ["O", "B-A", "I-A", "B-B", "I-B"]
    loss = T.MaskedSparseCategoricalCrossentropy(reduction="mean_with_sample_weight")
    metrics = [lambda: T.EntityF1(tags)]
    weights = np.linspace(0.1, 2.0, ROWS, dtype="float32")[:, None] * np.ones_like(ids)
    return model, loss, metrics, ids, mask_labels(ids % LABELS, ids), weights


def crf():
    ids = draw_tokens()
    tokens, x = embed()
    x = keras.layers.Dense(LABELS)(x)
    model = keras.Model(tokens, ka.blocks.ConditionalRandomField()(x))
    return model, T.CRFLoss(), [T.MaskedSequenceAccuracy], ids, mask_labels(ids % LABELS, ids)


def causal_language_model():
    ids = draw_tokens(length=LENGTH + 1)
    model = ka.models.causal_language_model(VOCABULARY, **SIZE)
    loss = T.MaskedSparseCategoricalCrossentropy(ignore_class=0)
    metrics = [lambda: T.MaskedPerplexity(ignore_class=0)]
    return model, loss, metrics, ids[:, :-1], ids[:, 1:]


def masked_language_model():
    ids = draw_tokens()
    model = ka.models.masked_language_model(VOCABULARY, **SIZE)
    labels = np.where((ids > 0) & (ids % 3 == 0), ids, -1)
    return model, T.MaskedSparseCategoricalCrossentropy(), [T.MaskedPerplexity], ids, labels


def seq2seq():
    source, target = draw_tokens(1), draw_tokens(2, LENGTH + 1)
    model = ka.models.seq2seq_transformer(VOCABULARY, VOCABULARY, **SIZE)
    inputs = {"source_ids": source, "target_ids": target[:, :-1]}
    loss = T.MaskedSparseCategoricalCrossentropy(ignore_class=0)
    metrics = [lambda: T.MaskedSparseCategoricalAccuracy(ignore_class=0)]
    return model, loss, metrics, inputs, target[:, 1:]


def multi_label():
    ids = draw_tokens()
    model = ka.models.text_classifier(VOCABULARY, LABELS, **SIZE)
    labels = np.stack([(ids == k).any(axis=1) for k in range(1, LABELS + 1)], 1).astype("float32")
    return model, T.MultiLabelCrossentropy(), [lambda: T.MacroF1(LABELS)], ids, labels


def span():
    x = np.random.default_rng(0).normal(size=(ROWS, LENGTH, 4)).astype("float32")
    inputs = keras.Input((LENGTH, 4))
    ends = keras.layers.Dense(2)(inputs)
    outputs = {"start_logits": ends[..., 0], "end_logits": ends[..., 1]}
    labels = np.array([[k % 3, 3 + k % 4] if k % 2 else [-1, -1] for k in range(ROWS)])
    return keras.Model(inputs, outputs), T.SpanCrossentropy(), [T.SpanF1], x, labels


def embed():
    """Return ids and their embeddings. More layers would increase rounding errors."""
    tokens = keras.Input((None,), dtype="int32")
    return tokens, ka.blocks.TokenEmbedding(VOCABULARY, 8)(tokens)


def dependencies():
    ids = draw_tokens()
    tokens, x = embed()
    arcs = ka.blocks.Biaffine(4, name="arc_scores")(x)
    relations = ka.blocks.Biaffine(4, LABELS, name="label_scores")(x)
    model = keras.Model(tokens, {"arc_scores": arcs, "label_scores": relations})
    heads = mask_labels(np.random.default_rng(0).integers(0, 2, ids.shape), ids)
    labels = {"arc_scores": heads, "label_scores": mask_labels(ids % LABELS, ids)}
    metrics = [T.UnlabeledAttachment, T.LabeledAttachment]
    return model, T.DependencyCrossentropy(0.1), metrics, ids, labels


def ctc():
    ids = draw_tokens()
    tokens, x = embed()
    model = keras.Model(tokens, keras.layers.Dense(LABELS)(x))  # each frame has an id
    labels = np.random.default_rng(0).integers(1, LABELS, (ROWS, 2))
    return model, T.MaskedCTC(), [T.CTCTranscriptAccuracy], ids, labels


def ctc_attention():
    ids = draw_tokens()
    tokens, x = embed()
    outputs = {name: keras.layers.Dense(LABELS, name=name)(x) for name in ("logits", "ctc_logits")}
    frames = np.random.default_rng(0).integers(1, LABELS, (ROWS, 1))
    labels = {"logits": mask_labels(ids % LABELS, ids), "ctc_logits": frames}
    return keras.Model(tokens, outputs), T.CTCAttention(), [], ids, labels


def objects(classification="focal"):
    x = np.random.default_rng(0).normal(size=(ROWS, 3, 4)).astype("float32")
    inputs = keras.Input((3, 4))
    kinds = {"focal": 2, "cross_entropy": 3}[classification]
    boxes = keras.layers.Dense(4, "sigmoid")(inputs)
    outputs = {"logits": keras.layers.Dense(kinds)(inputs), "boxes": boxes}
    labels = np.array([[0, 1, 1] if k % 2 else [1, -1, -1] for k in range(ROWS)])
    corners = np.random.default_rng(1).uniform(0.2, 0.5, (ROWS, 3, 4)).astype("float32")
    loss = T.HungarianLoss(classification)
    return keras.Model(inputs, outputs), loss, [], x, {"labels": labels, "boxes": corners}


def objects_softmax():
    return objects("cross_entropy")


CASES = {
    make.__name__: make
    for make in (
        *(sequence_labeler, entities, crf, causal_language_model, masked_language_model, seq2seq),
        *(multi_label, span, dependencies, ctc, ctc_attention, objects, objects_softmax),
    )
}


def compile_model(name):
    """Return a compiled model and its arrays: (model, inputs, labels[, weights])."""
    keras.utils.set_random_seed(0)
    model, loss, metrics, *arrays = CASES[name]()
    if len(model.outputs) > 1:
        model = T.JointModel(model)
    optimizer = keras.optimizers.SGD(0.1, momentum=0.9)
    options = {"weighted_metrics" if len(arrays) > 2 else "metrics": [make() for make in metrics]}
    model.compile(optimizer, loss, **options)
    return model, arrays
