"""Files for LiteRT-LM. The tests that run its engine need the extra `litert-lm`."""

import sys

import pytest
import tokenizers

import keras_attention as ka
from keras_attention.export import ExportError, to_litert_lm

TEXT = "the cat sat on the mat. the dog ran to the cat and the mat was red. " * 20
LENGTH = 48


def make_task(tokenizer, end_token_ids=(3,), **options):
    options = {"hidden_dim": 32, "dropout": 0.0} | options
    model = ka.models.causal_language_model(len(tokenizer), **options)
    preprocessor = ka.data.SequencePreprocessor(tokenizer, end_token_ids=end_token_ids)
    return ka.tasks.CausalLM(model, preprocessor, maximum_length=16)


def test_what_is_not_a_language_model_with_a_tokenizer_is_refused(tmp_path, labeler):
    with pytest.raises(ValueError, match="Functional is not a task that writes .* ka.tasks.Causal"):
        to_litert_lm(labeler, tmp_path / "model.litertlm")


@pytest.fixture(scope="module")
def task():
    return make_task(ka.data.Characters.build([TEXT]), num_layers=1, num_heads=2)


def test_arguments_are_checked(tmp_path, task):
    with pytest.raises(ValueError, match="not a file name that ends in .litertlm. Rename it"):
        to_litert_lm(task, tmp_path / "model.tflite")
    with pytest.raises(ValueError, match='Use "int8_weights" for models that generate'):
        to_litert_lm(task, tmp_path / "model.litertlm", quantization="int8")
    with pytest.raises(ValueError, match="prefill_length=1"):
        to_litert_lm(task, tmp_path / "model.litertlm", prefill_length=1)


def test_a_missing_package_is_named(tmp_path, monkeypatch, task):
    monkeypatch.setitem(sys.modules, "litert_lm_builder", None)
    with pytest.raises(ExportError, match=r"Run pip install 'keras-attention-zoo\[litert-lm\]'"):
        to_litert_lm(task, tmp_path / "model.litertlm")
    assert not list(tmp_path.iterdir())


def make_llama():
    """Return a task with the parts of Llama: rotary, RMSNorm, SwiGLU, shared heads, byte BPE."""
    bytes_of = tokenizers.pre_tokenizers.ByteLevel
    rules = tokenizers.Tokenizer(tokenizers.models.BPE())
    rules.pre_tokenizer = bytes_of(add_prefix_space=False)
    rules.decoder = tokenizers.decoders.ByteLevel()
    special = {"special_tokens": ["<s>", "</s>"], "initial_alphabet": bytes_of.alphabet()}
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=300, show_progress=False, **special)
    rules.train_from_iterator([TEXT], trainer)
    rules.post_processor = tokenizers.processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A $B", special_tokens=[("<s>", 0)]
    )
    content = rules.to_str().encode("utf-8")
    tokenizer = ka.data.PretrainedTokenizer.from_json(content, padding_id=None)
    attention = ka.attention.MultiHeadAttention(4, 8, num_key_value_heads=2, position="rotary")
    feed_forward = ka.blocks.FeedForward(64, "swiglu")
    encoder = ka.models.TransformerEncoder(
        2, attention=attention, feed_forward=feed_forward, normalization="rms_norm"
    )
    embedding = ka.models.TextEmbedding(padding_id=None)
    return make_task(tokenizer, 1, encoder=encoder, position=None, embedding=embedding)


def make_gpt():
    """Return a task with the parts of GPT-2: learned positions and GELU. It reads SentencePiece."""
    tokenizer = ka.data.Subwords.build([TEXT], 24)
    position = ka.positions.Learned(LENGTH)
    return make_task(tokenizer, num_layers=2, num_heads=4, intermediate_dim=64, position=position)


def write(engine, pieces, count):
    """Return the text that the engine generates, greedily, after a prompt in `pieces`."""
    import litert_lm

    options = {"sampler_config": litert_lm.SamplerConfig(top_k=1), "max_output_tokens": count}
    with engine.create_session(apply_prompt_template=False, **options) as session:
        for piece in pieces:
            session.run_prefill([piece])
        return session.run_decode().texts[0]


@pytest.fixture
def litert_lm():
    reason = "the engine needs pip install 'keras-attention-zoo[litert-lm]'"
    pytest.importorskip("litert_lm_builder", reason=reason)
    engine = pytest.importorskip("litert_lm", reason=reason)
    engine.set_min_log_severity(engine.LogSeverity.ERROR)
    return engine


@pytest.mark.slow
@pytest.mark.parametrize("make", [make_llama, make_gpt])
def test_the_engine_writes_the_same_text(make, tmp_path, litert_lm):
    task, path = make(), tmp_path / "model.litertlm"
    task.fit(TEXT, epochs=1, steps=80, batch_size=8, learning_rate=0.01, verbose=False)
    report = to_litert_lm(task, path, max_length=LENGTH, prefill_length=8)
    assert report.size == path.stat().st_size and report.max_abs_error < 1e-4
    assert [file.name for file in tmp_path.iterdir()] == ["model.litertlm"]
    # The last piece of the last prompt is filled up with padding to beyond the last position.
    words, fitting = TEXT.split(), 1
    while len(task.preprocessor([" ".join(words[: fitting + 1])])[0]) <= LENGTH - 5:
        fitting += 1
    long = " ".join(words[:fitting]), f" {words[fitting]}"
    backend = litert_lm.Backend.CPU(thread_count=1)
    with litert_lm.Engine(str(path), backend, cache_dir=":nocache") as engine:
        for pieces in (["the cat"], ["t"], ["the dog ran to the cat", " and the"], long):
            prompt = "".join(pieces)
            # The engine does not write a last token that no longer fits into the cache.
            count = min(16, LENGTH - len(task.preprocessor([prompt])[0]))
            (expected,) = task.predict([prompt], max_new_tokens=count, temperature=0)
            expected = expected[len(prompt) :]
            if make is make_gpt:  # with SentencePiece the engine drops a space at the beginning
                expected = expected.removeprefix(" ")
            assert write(engine, pieces, 16) == expected, pieces
            assert expected
