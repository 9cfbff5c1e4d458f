"""`ImageTextMatcher`: checkpoints of CLIP and SigLIP, unseen classes, files and commands."""

import json

import keras
import numpy as np
import pytest

import keras_attention as ka
from keras_attention.pretrained.checkpoint import Checkpoint
from keras_attention.pretrained.saving import write_tensors
from tests.grids import quick
from tests.small_runs import train
from tests.tasks.checkpoint_files import make_pictures, write_byte_bpe

pytestmark = pytest.mark.tensorflow
MEAN, STD = np.array([0.5, 0.4, 0.3]), np.array([0.2, 0.25, 0.5])  # of `make_pictures`
TEXTS = ["the cat", "a dog sat on the mat", "a"]
IMAGES = np.random.default_rng(0).random((3, 12, 12, 3)).astype("float32")
COLOURS = {"red": (220, 30, 30), "green": (20, 180, 20), "blue": (30, 60, 220)}
SHAPES = {
    "circle": lambda x, y: x**2 + y**2 < 1,
    "square": lambda x, y: np.maximum(abs(x), abs(y)) < 0.85,
    "cross": lambda x, y: (np.minimum(abs(x), abs(y)) < 0.3) & (np.maximum(abs(x), abs(y)) < 1),
}
NAMES = [f"{colour} {shape}" for colour in COLOURS for shape in SHAPES]
SIZE = dict(num_layers=1, num_heads=2, hidden_dim=32, dropout=0.0)
SIZE |= dict(embedding={"stem_filters": (16, 32)}, image_size=(24, 24))


def draw(name, random):
    """Draw a shape of a colour, such as a red circle, anywhere in an image."""
    colour, shape = name.split()
    rows, columns = np.mgrid[:24, :24]
    (x, y), size = random.uniform(8, 16, 2), random.uniform(5, 8)
    image = np.full((24, 24, 3), random.integers(200, 256), "uint8")
    image[SHAPES[shape]((columns - x) / size, (rows - y) / size)] = COLOURS[colour]
    return image


def make_pairs(names, count, seed=0):
    random = np.random.default_rng(seed)
    return [(draw(name, random), f"a {name}") for name in names for _ in range(count)]


def end_texts(end):
    """Return a function that makes the rule that the token `<e>` ends each text."""
    return lambda processors: processors.TemplateProcessing(
        single="$A <e>", special_tokens=[("<e>", end)]
    )


TOKENIZERS = {
    "clip": lambda folder: write_byte_bpe(folder, last=["<e>"], post_processor=end_texts(30)),
    "siglip": lambda folder: write_byte_bpe(folder, "<u>", "<e>", post_processor=end_texts(1)),
}


def make_checkpoint(name, folder):
    """Make a checkpoint whose encoders return vectors of one size. SigLIP's are stored with two."""
    make_pictures(name, folder)
    if name == "siglip":
        config = json.loads((folder / "config.json").read_text())
        config["text_config"]["projection_size"] = width = config["vision_config"]["hidden_size"]
        (folder / "config.json").write_text(json.dumps(config))
        tensors = {name: np.array(one.read()) for name, one in Checkpoint(folder).tensors.items()}
        random = np.random.default_rng(0)
        for part, shape in (("weight", (width, width)), ("bias", (width,))):
            tensors[f"text_model.head.{part}"] = random.normal(size=shape).astype("float32")
        write_tensors(folder / "model.safetensors", tensors)
    return TOKENIZERS[name](folder)


@pytest.fixture(scope="module", params=TOKENIZERS)
def opened(request, tmp_path_factory):
    """Return the folder of a checkpoint, and the task that was opened from it."""
    folder = tmp_path_factory.mktemp("checkpoint") / request.param
    make_checkpoint(request.param, folder)
    return folder, ka.tasks.from_preset(folder)


@pytest.fixture(scope="module")
def new():
    """Return a task that is not trained, and its pairs."""
    keras.utils.set_random_seed(0)
    pairs = make_pairs(NAMES[:4], 2)
    return ka.tasks.ImageTextMatcher.from_data(pairs, **SIZE), pairs


MOST_WITH_CLIP = pytest.mark.parametrize("opened", quick([*TOKENIZERS], "clip"), indirect=True)


def scale(vectors):
    vectors = np.asarray(vectors, "float64")
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def test_logits_of_a_checkpoint_follow_from_its_encoders(opened):
    folder, task = opened
    assert type(task) is ka.tasks.ImageTextMatcher
    tensors = Checkpoint(folder).tensors
    images = ka.pretrained.load(folder, task="image_encoder")(
        ((IMAGES - MEAN) / STD).astype("float32")
    )
    ids = task.preprocessor(TEXTS)
    vectors = ka.pretrained.load(folder, task="text_encoder")(ids)
    expected = (
        scale(images) @ scale(vectors).T * np.exp(float(tensors["logit_scale"].read().item()))
    )
    if "logit_bias" in tensors:  # SigLIP reads its vector at the last of all positions
        expected += float(tensors["logit_bias"].read().item())
        assert ids.shape == (3, 16)
    np.testing.assert_allclose(task.compare(IMAGES, TEXTS), expected, atol=2e-5)
    logits = task.model({"images": IMAGES, "token_ids": ids})
    np.testing.assert_allclose(logits, expected, atol=2e-5)
    assert task.pretrained and task.recipe.learning_rate < 1e-4


def test_probabilities_are_a_softmax_or_with_a_bias_a_sigmoid(opened):
    _, task = opened
    logits = task.compare(IMAGES, ["a cat", "a dog", "a mat"]).astype("float64")
    classes = task.classify(IMAGES, ["cat", "dog", "mat"], template="a {}", top=3)
    if task.bias is None:
        shares = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    else:
        shares = 1 / (1 + np.exp(-logits))
    for row, probabilities in zip(classes, shares, strict=True):
        order = np.argsort(-probabilities)
        assert [one.label for one in row] == [("cat", "dog", "mat")[i] for i in order]
        found = [one.probability for one in row]
        np.testing.assert_allclose(found, probabilities[order], atol=1e-5)
    best = task.classify(IMAGES, ["cat", "dog", "mat"], template="a {}")
    assert best == [row[0] for row in classes]


@MOST_WITH_CLIP
def test_several_templates_average_the_vectors(opened):
    _, task = opened
    vectors = [task.embed_texts([text]) for text in ("a cat", "the cat")]
    expected = task.compare(IMAGES, scale(sum(vectors)).astype("float32"))
    if task.bias is None:  # the softmax over one name is always 1
        ((one, other),) = task.classify(
            IMAGES[:1], ["cat", "dog"], template=["a {}", "the {}"], top=2
        )
        dogs = [task.embed_texts([text]) for text in ("a dog", "the dog")]
        dogs = task.compare(IMAGES, scale(sum(dogs)).astype("float32"))
        difference = float(expected[0, 0] - dogs[0, 0])
        shares = {one.label: one.probability, other.label: other.probability}
        assert np.log(shares["cat"] / shares["dog"]) == pytest.approx(difference, abs=1e-4)
    else:
        results = task.classify(IMAGES, ["cat"], template=["a {}", "the {}"])
        shares = 1 / (1 + np.exp(-expected[:, 0]))
        np.testing.assert_allclose([one.probability for one in results], shares, atol=1e-5)


@MOST_WITH_CLIP
def test_search_returns_the_nearest_images(opened):
    _, task = opened
    vectors, queries = task.predict(IMAGES), task.embed_texts(TEXTS)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    results = task.search(TEXTS, IMAGES, top_k=2)
    for row, scores in zip(results, queries @ vectors.T, strict=True):
        assert [one.index for one in row] == list(np.argsort(-scores)[:2])
        np.testing.assert_allclose([one.score for one in row], np.sort(scores)[:0:-1], atol=1e-5)
    assert task.search(TEXTS, vectors, 2) == results
    assert task.predict([]).shape == task.embed_texts([]).shape == (0, vectors.shape[1])


@MOST_WITH_CLIP
def test_preset_keeps_logits_and_settings(opened, tmp_path):
    _, task = opened
    task.save_to_preset(tmp_path / "preset")
    loaded = ka.tasks.from_preset(tmp_path / "preset")
    assert isinstance(loaded, ka.tasks.ImageTextMatcher)
    assert loaded.preprocessor == task.preprocessor
    np.testing.assert_allclose(loaded.compare(IMAGES, TEXTS), task.compare(IMAGES, TEXTS))
    assert loaded.settings == task.settings
    assert loaded.temperature == pytest.approx(task.temperature, rel=1e-6)


def test_a_checkpoint_without_a_text_encoder_is_refused(tmp_path):
    folder = make_pictures("vit-headless", tmp_path / "vit")
    with pytest.raises(ValueError, match="has no text encoder beside its image encoder: expected"):
        ka.tasks.ImageTextMatcher.from_preset(folder)


def test_scores_follow_from_the_cosines(new):
    task, pairs = new
    pairs = [*pairs[:5], ka.data.CaptionedImage(pairs[5][0], ("a red cross", "a red circle"))]
    images = task.predict([image for image, *_ in pairs])
    texts = ["a red circle", "a red square", "a red cross"]
    cosines = task.embed_texts(texts) @ images.T
    relevant = [{0, 1, 5}, {2, 3}, {4, 5}]
    first = [
        len({int(np.argmax(row))} & own) / len(own)
        for row, own in zip(cosines, relevant, strict=True)
    ]
    captions = [{0}, {0}, {1}, {1}, {2}, {2, 0}]
    back = [
        len({int(np.argmax(row))} & own) / len(own)
        for row, own in zip(cosines.T, captions, strict=True)
    ]
    scores = task.evaluate(pairs)
    assert scores["recall@1"] == pytest.approx(np.mean(first), abs=1e-6)
    assert scores["text_recall@1"] == pytest.approx(np.mean(back), abs=1e-6)
    assert len(scores) == 8


def test_equal_captions_are_not_negatives(new):
    task, pairs = new
    job = task.make_job(task.as_data(pairs).train, task.as_data(pairs[:3]).train, task.recipe)
    assert job.monitor == "contrastive_accuracy"
    ((inputs, numbers),) = job.dev.as_numpy_iterator()
    assert numbers.tolist() == [[0, 0], [1, 0], [2, 1]]
    logits = np.array(job.model(inputs))
    changed = logits.copy()
    changed[0, 1] = changed[1, 0] = 99.0  # both images show a red circle
    assert float(job.loss(numbers, changed)) == pytest.approx(
        float(job.loss(numbers, logits)), abs=1e-5
    )
    changed[0, 2] = 99.0
    assert float(job.loss(numbers, changed)) > 10


def test_errors_say_what_is_expected(new):
    task, pairs = new
    images = [pairs[0][0]]
    cases = [
        (lambda: task.predict(images[0]), "is one image: pass a list of"),
        (lambda: task.embed_texts("cat"), "is one text: pass a list of str"),
        (lambda: task.embed_texts(["a", " "]), "^Text 2: ' ' holds no word"),
        (lambda: task.classify(images, "cat"), "is one name: pass a list of str"),
        (lambda: task.classify(images, []), "expected different names, at least one"),
        (lambda: task.classify(images, ["a", "a"]), "expected different names, at least one"),
        (lambda: task.classify(images, ["a"], template="x"), "expected a text with {} for the"),
        (lambda: task.classify(images, ["a"], template=[]), "expected at least one text"),
        (lambda: task.search(["a"], images, 0), "top_k must be a whole number of at least 1"),
        (lambda: task.evaluate([(images[0], " ")]), "expected one or more str, none of them"),
        (lambda: task.predict(["absent.png"]), "The file absent.png is missing"),
    ]
    for compute, message in cases:
        with pytest.raises(ValueError, match=message):
            compute()


def test_attention_is_that_of_the_image_encoder(new, tmp_path):
    task, pairs = new
    maps = task.attention(pairs[0][0], tmp_path / "x.png")
    assert (tmp_path / "x.png").exists() and maps.queries is None
    assert all(weights.shape[-1] == 36 for weights in maps.weights.values())
    data = ka.data.CaptionedImage.collect(pairs, test=[(pairs[0][0], "a " * 300)], dev_fraction=0)
    assert task.describe_data(data) == ("only the first 256 words of 1 long captions are used",)


@pytest.mark.slow
def test_trained_model_knows_names_and_its_file_agrees(tmp_path):
    names = NAMES[1:4] + NAMES[5:8]
    pairs, new = make_pairs(names, 30), make_pairs(names, 5, seed=1)
    task = ka.tasks.ImageTextMatcher.from_data(pairs, **SIZE)
    assert task.temperature == pytest.approx(0.07, rel=1e-5)
    options = dict(epochs=12, batch_size=32, learning_rate=3e-3, verbose=False)
    task.fit(pairs, make_pairs(names, 4, seed=2), **options)
    assert task.scores["dev"]["contrastive_accuracy"] > 0.8
    assert task.temperature != pytest.approx(0.07, rel=1e-3)
    images = [image for image, _ in new]
    results = task.classify(images, names, template="a {}")
    right = [one.label == text[2:] for one, (_, text) in zip(results, new, strict=True)]
    assert np.mean(right) > 0.6  # chance is 1 / 6
    task.save_to_preset(tmp_path / "preset")
    report = task.export(tmp_path / "preset" / "model.tflite", batch_size=1, sequence_length=8)
    assert [one.name for one in report.signatures] == ["embed_images", "embed_texts"]
    assert report.max_abs_error < 1e-5
    file = ka.tasks.from_preset(tmp_path / "preset", "litert")
    np.testing.assert_allclose(
        file.compare(images[:3], names), task.compare(images[:3], names), atol=1e-3
    )
    assert file.temperature == pytest.approx(task.temperature, rel=1e-6)


@pytest.mark.slow
def test_a_checkpoint_is_trained_further(tmp_path):
    task = ka.tasks.ImageTextMatcher.from_preset(make_checkpoint("siglip", tmp_path / "siglip"))
    before, bias = task.compare(IMAGES, TEXTS), task.bias
    pairs = [(image, text) for image, text in zip(IMAGES, TEXTS, strict=True)] * 8
    task.fit(pairs, epochs=1, batch_size=8, learning_rate=1e-2, verbose=False)
    assert np.abs(task.compare(IMAGES, TEXTS) - before).max() > 1e-3
    assert task.bias == bias


@pytest.mark.slow
def test_commands_train_predict_and_evaluate(run, tmp_path):
    rows, output = ["image,text"], tmp_path / "out"
    for k, (image, text) in enumerate(make_pairs(NAMES[:4], 6)):
        keras.utils.save_img(tmp_path / f"{k}.png", image, scale=False)
        rows.append(f"{k}.png,{text}")
    file = tmp_path / "pairs.csv"
    file.write_text("\n".join(rows))
    words = ["image_text_matcher", "--train", str(file), "--dev", str(file), "--test", str(file)]
    words += ["--num-layers", "1", "--num-heads", "2", "--hidden-dim", "16", "--dropout", "0"]
    words += ["--epochs", "2", "--image-size", "24"]
    train(words, output)
    scores = json.loads((output / "scores.json").read_text())["test"]
    assert scores["keras"] == pytest.approx(scores["litert"], abs=1e-4)
    manifest = json.loads((output / "manifest.json").read_text())
    assert manifest["preprocessing"]["kind"] == "image_text_pairs" and manifest["bias"] is None
    code, out, _ = run("predict", output, str(tmp_path / "0.png"), "--json")
    (vector,) = [json.loads(line)["prediction"] for line in out.splitlines()[-1:]]
    task = ka.tasks.from_preset(output)
    assert code == 0
    np.testing.assert_allclose(vector, task.predict([tmp_path / "0.png"])[0], atol=1e-4)
    code, out, _ = run("export", output, "--format", "litert", "--quantization", "float16")
    assert code == 0 and (output / "model.float16.tflite").exists()
    code, out, _ = run("evaluate", output, "--file", file)
    assert code == 0 and "text_recall@1" in out
