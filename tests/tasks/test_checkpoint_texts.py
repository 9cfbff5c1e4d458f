"""Checkpoints that write texts or fill in masks, as tasks."""

import json

import numpy as np
import pytest

import keras_attention as ka
from tests.grids import sampled
from tests.pretrained.make_checkpoints import WRITTEN
from tests.tasks import checkpoint_files
from tests.tasks.checkpoint_files import (
    TEXT,
    make_bert,
    make_gpt2,
    make_llama,
    make_roberta,
    write_byte_bpe,
)

pytestmark = pytest.mark.tensorflow
PAIRS = [ka.data.Pair("the cat", "a dog"), ka.data.Pair("a dog", "the cat")] * 8


def read_litert(task, folder, **options):
    """Save a task as a preset, and open its LiteRT file."""
    task.save_to_preset(folder)
    task.export(folder / "model.tflite", **options)
    return ka.tasks.from_preset(folder, "litert")


@pytest.mark.slow
def test_checkpoint_continues_a_text_like_transformers(tmp_path):
    folder = make_gpt2(tmp_path / "gpt2")
    task = ka.tasks.from_preset(folder)
    assert type(task) is ka.tasks.CausalLM and task.maximum_length == 16  # its positions
    tokenizer, model = ka.pretrained.tokenizer(folder), ka.pretrained.load(folder)
    ids = tokenizer.encode(["the cat"])
    written = ka.generation.generate(model, ids, 6, end_token_id=30)
    (text,) = task.predict(["the cat"], max_new_tokens=6, temperature=0)
    assert text == "the cat" + tokenizer.decode(written)[0]


@pytest.mark.slow
def test_exported_language_model_writes_like_the_model(tmp_path):
    task = ka.tasks.from_preset(make_gpt2(tmp_path / "gpt2"))
    file = read_litert(task, tmp_path / "preset")
    options = {"max_new_tokens": 6, "temperature": 0}
    assert file.predict(["the cat"], **options) == task.predict(["the cat"], **options)
    assert file.evaluate(TEXT) == pytest.approx(task.evaluate(TEXT), rel=1e-4)


def test_stream_yields_whole_characters(tmp_path):
    folder = checkpoint_files.copy_checkpoint("gpt2", tmp_path / "gpt2")
    write_byte_bpe(folder, text="the cé", last=["<|endoftext|>"])
    task = ka.tasks.from_preset(folder)
    first, second = task.preprocessor.tokenizer.encode(["é"])[0]

    class Run:
        max_length = None

        def stream(self, ids, number, sampler, *, end_token_id, seed):
            yield from [first, second, first]

    task.runner = Run()
    assert task.predict(["the"]) == ["theé\ufffd"]  # the last character is incomplete


@pytest.mark.slow
def test_id_0_is_a_token_that_an_exported_file_writes(tmp_path):
    """Check id 0, which is `!` in the vocabulary of GPT-2."""
    task = ka.tasks.from_preset(make_gpt2(tmp_path / "gpt2"))
    first = task.preprocessor.tokenizer.pieces([0])[0]
    weights = {v.path: v for v in task.model.weights}
    table = weights["embedding/table/embeddings"]
    rows = np.array(table)
    rows[0] *= 20  # a long vector, so that its product with itself is the largest
    table.assign(rows)
    weights["final_norm/gamma"].assign(np.zeros(12))
    weights["final_norm/beta"].assign(rows[0])
    file = read_litert(task, tmp_path / "preset")
    for one in (task, file):
        assert one.predict(["cat"], max_new_tokens=3, temperature=0) == ["cat" + 3 * first]


@pytest.mark.slow
def test_llama_text_has_one_begin_id_and_several_end_ids(tmp_path):
    settings = {"do_sample": True, "temperature": 0.6}
    task = ka.tasks.from_preset(make_llama(tmp_path / "llama", **settings))
    assert task.preprocessor.end_token_ids == (2, 5) and task.temperature == 0.6
    assert [row[0] for row in task.preprocessor(["a", "the"])] == [1, 1]
    assert task.settings["writing"]["end_token_id"] == (2, 5)
    assert task.maximum_length == 128 and task.max_length == 512
    task = ka.tasks.CausalLM.from_preset(tmp_path / "llama", max_length=12)
    assert (task.maximum_length, task.max_length) == (12, 48)

    class Run:
        max_length = None

        def stream(self, ids, number, sampler, *, end_token_id, seed):
            yield from task.preprocessor([" dog"])[0][1:].tolist() + [5]
            assert end_token_id == (2, 5)

    task.runner = Run()
    assert task.predict(["the"]) == ["the dog"]
    task.__dict__.pop("runner")
    task.save_to_preset(tmp_path / "preset")
    again = ka.tasks.from_preset(tmp_path / "preset")
    assert again.preprocessor == task.preprocessor and again.pretrained
    options = {"max_new_tokens": 4, "temperature": 0}
    assert again.predict(["the"], **options) == task.predict(["the"], **options)


@pytest.mark.slow
def test_a_language_model_is_fine_tuned(tmp_path):
    task = ka.tasks.from_preset(make_gpt2(tmp_path / "gpt2"))
    before = task.evaluate(TEXT)["perplexity"]
    common = {"steps": 12, "batch_size": 4, "learning_rate": 0.02, "verbose": False}
    task.fit(TEXT * 9, epochs=2, **common)
    after = task.evaluate(TEXT)["perplexity"]
    assert after < 0.7 * before
    task.fit(TEXT * 9, epochs=1, lora_rank=2, **common)
    assert not [v for v in task.model.weights if "lora" in v.path]
    assert task.evaluate(TEXT)["perplexity"] < after
    with pytest.raises(ValueError, match="freeze='all' leaves no weights of causal_language_model"):
        task.fit(TEXT * 9, epochs=1, freeze="all", **common)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["t5", "bart", "marian"])
def test_encoder_decoder_writes_a_text_like_transformers(name, tmp_path):
    folder = getattr(checkpoint_files, f"make_{name}")(tmp_path / name, num_beams=2)
    task = ka.tasks.from_preset(folder)
    assert type(task) is ka.tasks.Seq2SeqLM and task.writing.beam == 2
    tokenizer, model = ka.pretrained.tokenizer(folder), ka.pretrained.load(folder)
    start, end, padding = {"t5": (0, 1, 0), "bart": (2, 2, 1), "marian": (30, 0, 30)}[name]
    texts = ["the cat sat", "a dog"]
    ids = ka.generation.generate(
        model,
        tokenizer(texts),
        task.writing.max_new_tokens,
        ka.generation.Beam(2, length_penalty=1.0),
        start_token_id=start,
        end_token_id=end,
        padding_id=padding,
    )
    ends = [row.tolist().index(end) if end in row else len(row) for row in ids]
    expected = tokenizer.decode([row[:n] for row, n in zip(ids, ends, strict=True)])
    assert task.predict(texts) == expected
    assert padding not in np.concatenate([row[:n] for row, n in zip(ids, ends, strict=True)])
    (target,) = task.preprocessor.target_ids(["a dog"])
    assert target[0] == start and target[-1] == end
    assert task.preprocessor.texts([target[1:]]) == ["a dog"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings, k", [(settings, k) for k, settings in enumerate(WRITTEN["bart"])]
)
def test_task_follows_generation_config_like_transformers(settings, k, tmp_path):
    """Compare with `written.npz`, the output of transformers with these settings."""
    folder = checkpoint_files.make_bart(tmp_path / "bart", **settings)
    with np.load(folder / "written.npz") as written, np.load(folder / "expected.npz") as reference:
        expected, sources = written["ids"][k], reference["source_ids"]
    task = ka.tasks.Seq2SeqLM.from_preset(folder, max_length=8)
    writing = task.settings["writing"]
    assert writing["forced_bos_token_id"] == 0 and "suppress_tokens" not in writing
    least = settings.get("min_length", 1) - 1  # includes the first token of a decoder
    assert writing.get("min_new_tokens", 0) == least
    task.save_to_preset(tmp_path / "preset")
    again = ka.tasks.from_preset(tmp_path / "preset")
    assert again.settings == task.settings
    np.testing.assert_array_equal(again.runner(sources), expected)


@pytest.mark.slow
def test_exported_file_follows_the_generation_config(tmp_path):
    settings = {"suppress_tokens": [18, 14], "begin_suppress_tokens": [4]}
    settings |= {"min_length": 6, "no_repeat_ngram_size": 2}
    folder = checkpoint_files.make_bart(tmp_path / "bart", forced_bos_token_id=0, **settings)
    task = ka.tasks.Seq2SeqLM.from_preset(folder, max_length=8)
    assert task.settings["writing"].items() >= {"forced_bos_token_id": 0}.items()
    assert task.writing.suppress_tokens == (18, 14) and task.writing.begin_suppress_tokens == (4,)
    file = read_litert(task, tmp_path / "preset")
    ids = task.preprocessor(["the cat", "a dog"])
    expected = task.runner(ids)
    assert (expected[:, 0] == 0).all() and not np.isin(expected, [18, 14]).any()
    np.testing.assert_array_equal(file.runner(ids), expected)
    stepwise = ka.export.LiteRTGenerator(tmp_path / "preset" / "model.tflite").generate(ids)
    np.testing.assert_array_equal(stepwise, expected[:, : stepwise.shape[1]])


@pytest.mark.slow
@pytest.mark.parametrize("name", sampled(["bart", "marian"]))
def test_fine_tuned_encoder_decoder_is_exported(name, tmp_path):
    folder = getattr(checkpoint_files, f"make_{name}")(tmp_path / name)
    options = {"score": "exact_match", "max_length": 12}
    task = ka.tasks.Seq2SeqLM.from_preset(folder, **options)
    task.fit(PAIRS, epochs=40, batch_size=4, learning_rate=0.02, verbose=False)
    assert task.evaluate(PAIRS[:2]) == {"exact_match": 1.0}
    file = read_litert(task, tmp_path / "preset", batch_size=2, sequence_length=10)
    assert file.predict(["a dog", "the cat"]) == ["the cat", "a dog"]
    again = ka.tasks.from_preset(tmp_path / "preset", "keras")
    assert again.preprocessor == task.preprocessor and again.recipe.data.max_tokens == 2048
    assert again.evaluate(PAIRS[:2]) == {"exact_match": 1.0}


def test_prefix_is_put_before_every_source(tmp_path):
    folder = checkpoint_files.make_t5(tmp_path / "t5")
    task = ka.tasks.Seq2SeqLM.from_preset(folder, prefix="the mat: ", beam=3)
    tokenizer = ka.pretrained.tokenizer(folder)
    np.testing.assert_array_equal(task.preprocessor(["a cat"]), tokenizer(["the mat: a cat"]))
    assert task.writing.beam == 3
    short = ka.tasks.Seq2SeqLM.from_preset(folder, max_length=4)
    pairs = [ka.data.Pair("the cat sat on the mat. a dog sat", "a"), ka.data.Pair("a", TEXT)]
    (inputs, _), *remaining = short.make_training_batches(pairs, short.recipe)  # only targets count
    assert (
        not remaining and inputs["source_ids"].shape[0] == 1 and inputs["source_ids"].shape[1] > 4
    )
    assert short.describe_data(ka.data.Pair.collect(pairs, dev_fraction=0)) == (
        "1 pairs of more than 4 tokens were not trained on",
    )
    task.save_to_preset(tmp_path / "preset")
    assert ka.tasks.from_preset(tmp_path / "preset").preprocessor.prefix == "the mat: "


@pytest.mark.slow
def test_parts_of_an_encoder_decoder_are_trained(tmp_path):
    folder = checkpoint_files.make_t5(tmp_path / "t5")
    task = ka.tasks.Seq2SeqLM.from_preset(folder, max_length=12)
    before = {v.path: np.array(v) for v in task.model.weights}
    common = {"epochs": 1, "batch_size": 8, "learning_rate": 0.01, "verbose": False}
    task.fit(PAIRS, freeze=2, layer_decay=0.9, **common)  # both blocks of the encoder
    changed = [v.path for v in task.model.weights if (np.array(v) != before[v.path]).any()]
    assert changed and not [path for path in changed if "encoder_block" in path]
    assert any("decoder_block_0" in path for path in changed)
    task.fit(PAIRS, lora_rank=2, **common)
    assert not [v for v in task.model.weights if "lora" in v.path]
    assert all(layer.trainable for layer in task.model.get_layer("encoder").layers)


@pytest.mark.parametrize("make, mask", [(make_bert, "[MASK]"), (make_roberta, "<mask>")])
def test_masked_token_is_predicted(make, mask, tmp_path):
    folder = make(tmp_path / "checkpoint")
    task = ka.tasks.from_preset(folder)
    assert type(task) is ka.tasks.MaskedLM
    tokenizer, model = ka.pretrained.tokenizer(folder), ka.pretrained.load(folder)
    (ids,) = tokenizer.encode([f"the{mask} sat"])
    inputs = task.preprocessor([f"the{mask} sat"])
    token_ids = inputs["token_ids"] if isinstance(inputs, dict) else inputs
    assert token_ids.tolist() == [ids]
    logits = np.asarray(model(inputs))[0, ids.index(tokenizer.mask_token_id)].astype("float64")
    logits[[i for i in range(31) if i in tokenizer.special_ids or i >= len(tokenizer)]] = -np.inf
    shares = np.exp(logits) / np.exp(logits).sum()
    best = np.argsort(-shares)[:3]
    ((results,),) = task.predict([f"the{mask} sat"], top=3)
    assert [one.token for one in results] == tokenizer.pieces(best)
    np.testing.assert_allclose([one.probability for one in results], shares[best], rtol=1e-4)
    assert task.predict(["the[MASK] sat"], top=3) == task.predict([f"the{mask} sat"], top=3)
    assert len(task.attention(f"the{mask} sat").keys) == len(ids)


def test_windows_have_special_tokens_around_them(tmp_path):
    task = ka.tasks.MaskedLM.from_preset(make_bert(tmp_path / "bert"), max_length=8)
    (inputs, labels), *_ = task.make_batches(TEXT, "test")
    ids = inputs["token_ids"].numpy()
    assert (ids[:, 0] == 2).all() and (ids[0, -1] == 3).all() and ids.shape[1] == 8
    assert not inputs["segment_ids"].numpy().any()
    hidden = labels.numpy() >= 0
    assert hidden.any() and not np.isin(labels.numpy()[hidden], [0, 1, 2, 3, 4]).any()
    assert (labels.numpy()[ids == 0] == -1).all()


@pytest.mark.slow
def test_a_masked_model_is_fine_tuned(tmp_path):
    task = ka.tasks.MaskedLM.from_preset(make_bert(tmp_path / "bert"), max_length=8)
    before = task.evaluate(TEXT * 4)
    common = {"steps": 12, "batch_size": 8, "learning_rate": 0.01, "verbose": False}
    task.fit(TEXT * 9, epochs=2, **common)
    assert task.evaluate(TEXT * 4)["perplexity"] < 0.7 * before["perplexity"]
    task.fit(TEXT * 9, epochs=1, freeze="all", **common)
    task.fit(TEXT * 9, epochs=1, lora_rank=1, layer_decay=0.8, **common)
    file = read_litert(task, tmp_path / "preset", batch_size=1, sequence_length=8)
    ((results, *_),) = file.predict(["the [MASK] sat"])[0]
    ((expected, *_),) = task.predict(["the [MASK] sat"])[0]
    assert results.token == expected.token
    assert results.probability == pytest.approx(expected.probability, rel=1e-3)


@pytest.mark.parametrize(
    "name, task_class, message",
    [
        ("bert-texts", "MaskedLM", "is a text_classifier, and a MaskedLM is made from a masked_la"),
        ("t5", "CausalLM", "is a encoder_decoder, and a CausalLM is made from a causal_language_"),
        ("gpt2", "Seq2SeqLM", "is a causal_language_model, and a Seq2SeqLM is made from a encoder"),
        ("gpt2", "TextClassifier", "is a causal_language_model, and a TextClassifier is made from"),
        (
            "vit",
            "TextClassifier",
            "is a vision_transformer, and a TextClassifier is made from a",
        ),
    ],
)
def test_a_checkpoint_of_another_kind_is_refused(name, task_class, message):
    with pytest.raises(ValueError, match=message):
        getattr(ka.tasks, task_class).from_preset(checkpoint_files.FOLDER / name)


def test_options_of_another_task_are_refused(tmp_path):
    folder = make_gpt2(tmp_path / "gpt2")
    with pytest.raises(ValueError, match="prefix= is not an option of a CausalLM .*: expected"):
        ka.tasks.CausalLM.from_preset(folder, prefix="a")
    with pytest.raises(ValueError, match="max_length= is for checkpoints of Hugging Face, and"):
        ka.tasks.CausalLM.from_preset(tmp_path / "none", max_length=4)


@pytest.mark.parametrize(
    "settings, message",
    [
        (
            {"eos_token_id": None},
            "eos_token_id is (null|not there): expected an id, or a list of ids",
        ),
        ({"eos_token_id": []}, "eos_token_id is a list: expected"),
        ({"eos_token_id": "x"}, "eos_token_id is 'x': expected"),
        (
            {"eos_token_id": 3, "do_sample": True, "temperature": 0},
            "temperature is 0: expected a number",
        ),
        (
            {"eos_token_id": 3, "suppress_tokens": [-1]},
            "suppress_tokens is a list: expected an id",
        ),
        (
            {"eos_token_id": 3, "no_repeat_ngram_size": 2.5},
            "no_repeat_ngram_size is 2.5: expected a whole number",
        ),
        (
            {"eos_token_id": 3, "min_length": 4},
            "sets min_new_tokens=4, which a CausalLM cannot apply",
        ),
        (
            {"eos_token_id": 3, "begin_suppress_tokens": [5]},
            r"sets begin_suppress_tokens=\(5,\), which a CausalLM cannot apply",
        ),
        ([], "generation_config.json is damaged: expected a JSON object"),
    ],
)
def test_invalid_generation_settings_are_refused(settings, message, tmp_path):
    folder = make_gpt2(tmp_path / "gpt2", eos_token_id=None)
    (folder / "generation_config.json").write_text(json.dumps(settings))
    with pytest.raises(ValueError, match=message):
        ka.tasks.from_preset(folder)
