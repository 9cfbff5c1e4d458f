"""Whisper as a task: prompts, suppressed tokens, presets, files, fine-tuning.

`written.npz` has the output of transformers for `draw_sounds()` with each prompt of `WRITTEN`.
"""

import json

import numpy as np
import pytest

import keras_attention as ka
from tests.pretrained.make_checkpoints import FOLDER, HEARD, LONGEST, WRITTEN, draw_sounds
from tests.tasks.checkpoint_files import copy_checkpoint

pytestmark = pytest.mark.tensorflow
NAME = "whisper-texts"
PROMPT = [HEARD[f"<|{name}|>"] for name in ("startoftranscript", "en", "transcribe")]
PROMPT += [HEARD["<|notimestamps|>"]]


def read_written():
    with np.load(FOLDER / NAME / "written.npz") as file:
        return file["ids"]


def change_settings(folder, **settings):
    """Copy the checkpoint with changes of `generation_config.json`. None removes an entry."""
    copy_checkpoint(NAME, folder)
    path = folder / "generation_config.json"
    content = json.loads(path.read_text()) | settings
    path.write_text(json.dumps({name: x for name, x in content.items() if x is not None}))
    return folder


@pytest.fixture(scope="module")
def task():
    return ka.tasks.SpeechToText.from_preset(FOLDER / NAME, max_length=LONGEST)


def test_whisper_opens_with_the_settings_of_its_files(task):
    opened = ka.tasks.from_preset(FOLDER / NAME)
    assert type(opened) is ka.tasks.SpeechToText and opened.pretrained
    assert opened.writing.max_new_tokens == 8 and opened.recipe.learning_rate == 1e-5
    writing = task.settings["writing"]
    assert list(writing["start_token_id"]) == PROMPT and writing["padding_id"] is None
    assert writing["end_token_id"] == HEARD["<|endoftext|>"]
    assert writing["begin_suppress_tokens"] == (0, writing["end_token_id"])
    assert 3 in writing["suppress_tokens"] and task.score == "error_rates"
    longest = ka.tasks.SpeechToText.from_preset(FOLDER / NAME, max_length=100)
    assert (
        longest.writing.max_new_tokens == 16 - len(PROMPT) + 1
    )  # its positions, without that of the last token


@pytest.mark.slow
def test_ids_equal_those_of_transformers(task):
    sounds = task.preprocessor(draw_sounds())
    for options, expected in zip(WRITTEN[NAME], read_written(), strict=True):
        prompt = task.preprocessor.prompt.find(**options)
        np.testing.assert_array_equal(task.runner(sounds, start_token_id=prompt), expected)


@pytest.mark.slow
def test_a_preset_transcribes_and_translates(task, tmp_path):
    task.save_to_preset(tmp_path / "preset")
    again = ka.tasks.from_preset(tmp_path / "preset")
    assert again.settings == task.settings and again.preprocessor == task.preprocessor
    sounds, written = draw_sounds(), read_written()
    results = again.predict(sounds, language="<|DE|>", task="translate")
    assert results == task.preprocessor.texts(written[1]) != task.preprocessor.texts(written[0])
    assert again.predict([np.zeros(20000)]) == [""]  # longer than the model reads at once, silent


@pytest.mark.sweep
def test_exported_file_transcribes_like_the_model(task, tmp_path):
    soundfile = pytest.importorskip("soundfile")
    path, (sound, *_) = tmp_path / "said.wav", draw_sounds()
    soundfile.write(path, sound, 16000, subtype="FLOAT")
    task.save_to_preset(tmp_path / "preset")
    report = task.export(tmp_path / "preset" / "model.tflite")
    assert report.generation["start_token_id"] == PROMPT
    assert "built-in" in str(report)
    file = ka.tasks.from_preset(tmp_path / "preset", "litert")
    expected = task.preprocessor.texts(read_written()[0])
    assert file.predict(draw_sounds()) == task.predict(draw_sounds()) == expected
    assert file.predict([str(path)], language="en") == expected[:1]
    with pytest.raises(ValueError, match="fixed in an exported file. Received .* Leave them out"):
        file.predict(draw_sounds(), task="translate")
    stepwise = ka.export.LiteRTGenerator(tmp_path / "preset" / "model.tflite")
    ids = stepwise.generate(task.preprocessor(draw_sounds()))
    np.testing.assert_array_equal(ids, read_written()[0][:, : ids.shape[1]])
    fixed = tmp_path / "fixed.tflite"  # the prompt is read token by token
    task.export(fixed, batch_size=3, sequence_length=16000)
    ids = ka.export.LiteRTGenerator(fixed).generate(task.preprocessor(draw_sounds()))
    np.testing.assert_array_equal(ids, read_written()[0][:, : ids.shape[1]])


@pytest.mark.sweep
def test_fine_tuning_learns_new_words():
    task = ka.tasks.SpeechToText.from_preset(FOLDER / NAME, language="de")
    texts = ["the cat.", "cat the", "the."]
    settings = [ka.data.Recording(x, text) for x, text in zip(draw_sounds(), texts, strict=True)]
    data = ka.data.Recording.collect(settings * 8, settings, settings, sampling_rate=16000)
    assert task.evaluate(data)["word_error_rate"] > 0.5
    task.fit(data, epochs=40, batch_size=6, learning_rate=0.01, verbose=False)
    assert task.evaluate(data) == {"word_error_rate": 0.0, "character_error_rate": 0.0}
    assert task.predict(draw_sounds()) == texts


def test_prompt_tokens_have_no_loss(task):
    settings = [ka.data.Recording(x, "the cat") for x in draw_sounds()]
    ((inputs, labels),) = task.make_training_batches(settings, task.recipe)
    words, end = [HEARD["Ġthe"], HEARD["Ġcat"]], HEARD["<|endoftext|>"]
    assert inputs["target_ids"].numpy()[0].tolist() == [*PROMPT, *words]
    assert labels.numpy()[0].tolist() == [-1, -1, -1, *words, end]
    with pytest.raises(ValueError, match="all recordings have more than 1 seconds or 8 tok"):
        task.make_training_batches([settings[0]._replace(text="n" * 20)], task.recipe)
    data = ka.data.Recording.collect(settings, sampling_rate=8000)
    with pytest.raises(ValueError, match="have 8000 samples a second, and the model takes 16000"):
        task.fit(data, verbose=False)


@pytest.mark.slow
def test_attention_is_drawn_over_time(task):
    maps = task.attention(draw_sounds()[0])
    assert maps.keys[:2] == ["0.00", "0.02"] and len(maps.keys) == 50
    assert maps.queries[0] == "Ġa"


def test_timestamps_are_not_part_of_the_text(task):
    ids = [HEARD[name] for name in ("<|0.00|>", "Ġthe", "Ġcat", "<|0.04|>", "<|endoftext|>", "u")]
    assert task.preprocessor.texts([ids]) == ["the cat"]
    assert HEARD["!"] == 0 and task.preprocessor.texts([[0]]) == ["!"]  # id 0 is a token


@pytest.mark.parametrize(
    "options, message",
    [
        ({"language": "latin"}, "language='latin': expected one of de, en, or its English name"),
        ({"task": "summarize"}, "task='summarize': expected one of transcribe, translate"),
        (
            {"prefix": "a"},
            "prefix= is not an option of a Spee.* expected some of language",
        ),
    ],
)
def test_from_preset_refuses_unknown_languages_tasks_and_options(options, message):
    with pytest.raises(ValueError, match=message):
        ka.tasks.SpeechToText.from_preset(FOLDER / NAME, **options)


def test_model_of_one_language_has_no_language_options(tmp_path):
    settings = {"is_multilingual": False, "lang_to_id": None, "task_to_id": None}
    task = ka.tasks.from_preset(change_settings(tmp_path / "english", **settings))
    assert task.preprocessor.start_token_id == (PROMPT[0], PROMPT[-1])
    with pytest.raises(ValueError, match="language='en': this model has one language. Leave it"):
        task.predict(draw_sounds(), language="en")
    with pytest.raises(ValueError, match="task='translate': this model only transcribes"):
        task.predict(draw_sounds(), task="translate")


def test_settings_choose_language_and_task(tmp_path):
    settings = {"language": "<|de|>", "task": "translate", "num_beams": 2}
    task = ka.tasks.from_preset(change_settings(tmp_path / "german", **settings))
    prompt = task.preprocessor.prompt
    assert (prompt.language, prompt.task) == ("de", "translate") and task.writing.beam == 2
    assert task.score == "translation"


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"no_timestamps_token_id": None}, "has no no_timestamps_token_id, the token that"),
        ({"lang_to_id": None}, "lang_to_id is not there: expected names and ids"),
        ({"task_to_id": {"transcribe": "x"}}, "transcribe is 'x': expected a whole number"),
    ],
)
def test_missing_prompt_settings_are_refused(settings, message, tmp_path):
    with pytest.raises(ka.pretrained.CheckpointError, match=message):
        ka.tasks.from_preset(change_settings(tmp_path / "whisper", **settings))


@pytest.mark.slow
def test_model_without_a_checkpoint_takes_no_language():
    settings = [ka.data.Recording(np.ones((30, 5), "float32"), "ab")] * 8
    size = dict(num_layers=1, num_heads=2, hidden_dim=8, intermediate_dim=8, kernel_size=3)
    task = ka.tasks.SpeechToText.from_data(
        settings, max_length=6, embedding={"spec_augment": None}, **size
    )
    with pytest.raises(ValueError, match="language='de' is for checkpoints of Whisper. This model"):
        task.predict([np.ones((30, 5))], language="de")
