"""Every layer, part and builder on the GPU delegate: its results are right, or a table lists it.

The tables list parts that stay on the CPU, are computed wrongly, or crash, with the operator that
causes it. An entry that is no longer needed fails, too.
"""

import keras
import numpy as np
import pytest

import keras_attention as ka
from keras_attention.export import convert, endpoint
from keras_attention.export.checks import cases, gpu_delegate, runner
from keras_attention.export.checks.parity import measure_parity
from keras_attention.export.quantization import get_quantization
from keras_attention.models.head import make_transform
from tests.export.helpers import MASK_CONSTANT, find_delegate, randomize
from tests.grids import sampled
from tests.stacks import embed_characters
from tests.tables import assert_lists, list_builders
from tests.test_contract import CASES, WITH_PARTS, case_with

pytestmark = [pytest.mark.slow, pytest.mark.tensorflow]

SIZES = {"B": 1, "T": 5, "S": 7}

# Operators of these stay on the CPU. The results are right.
PARTIAL = {
    "MixtureOfExperts switch": "CUMSUM of int32, SCATTER_ND",
    "MixtureOfExperts masked, within capacity": "CUMSUM of int32, SCATTER_ND",
    "Shaw": "UNSORTED_SEGMENT_SUM",
    "position Shaw": "UNSORTED_SEGMENT_SUM",
    "normalizer Entmax(alpha=1.3)": "WHILE",
}

# Files with parts on both devices are wrong here, such as the inside of loops, on some machines.
# Checks on the delegate refuse these files if their results differ from the model's.
# `CompiledModel` on the CPU is right.
WRONG = {
    "SegmentRecurrence": "TOPK_V2 of int32",
    "SegmentRecurrence of MemorizingAttention": "TOPK_V2 of int32",
    "RecurrentEncoder": "WHILE",
    "RecurrentEncoder stacked, masked": "WHILE",
    "AttentionCell bahdanau": "WHILE",
    "AttentionCell luong": "WHILE",
    "AttentionCell coverage": "WHILE",
    "LocalWindow": "WHILE",
    "RecurrentDecoder": "WHILE",
    "FeedbackDecoder": "WHILE",
}


def builders():
    """dict, name -> a function that makes a model of it."""
    sizes = dict(num_layers=1, num_heads=2, hidden_dim=64, intermediate_dim=96)

    sound = ka.models.SpeechEmbedding(num_mel_bins=12, subsampling=2)
    stem = ka.models.ImageEmbedding(stem_filters=(8, 8))

    def images(**kwargs):
        return lambda: ka.models.vision_transformer(
            (8, 12), 5, patch_size=4, num_channels=1, **sizes, **kwargs
        )

    def bare(position, mask=None):
        return ka.models.TransformerEncoder.of_size(
            **sizes,
            activation="geglu",
            use_bias=False,
            position=position,
            mask=mask,
            norm=ka.blocks.PreNorm(first_norm=False),
            normalization="layer_norm_no_bias",
        )

    poolings = {mode: mode for mode in ("cls", "mean", "max", "attention")}
    poolings["map"] = ka.blocks.AttentionPooling(
        ka.attention.MultiHeadAttention(2, 32), ka.blocks.FeedForward(96)
    )
    width = sizes["hidden_dim"]
    transform = make_transform(width, normalization="layer_norm_no_bias", use_bias=False)
    return {
        **{
            f"vision_transformer {name}": images(pooling=pooling)
            for name, pooling in poolings.items()
        },
        **{
            f"text_classifier {name}": lambda pooling=pooling: ka.models.text_classifier(
                50, 5, pooling=pooling, **sizes
            )
            for name, pooling in poolings.items()
        },
        **{
            f"text_encoder {mode}": lambda mode=mode: ka.models.text_encoder(
                50,
                pooling=mode,
                head=[keras.layers.Dense(width, ka.blocks.quick_gelu, name="pooler")],
                **sizes,
            )
            for mode in ("first", "last")
        },
        **{
            f"image_encoder {mode}": lambda mode=mode: ka.models.image_encoder(
                (8, 12),
                patch_size=4,
                pooling=mode,
                embedding=ka.models.ImageEmbedding(num_registers=1),
                head=[keras.layers.Dense(8)],
                **sizes,
            )
            for mode in ("prefix", "cls_mean")
        },
        "text_encoder end": lambda: ka.models.text_encoder(
            50,
            pooling=ka.blocks.FirstOf(3, name="pooling"),
            head=[
                keras.layers.Dense(8, use_bias=False, name="projection"),
                keras.layers.UnitNormalization(name="unit_length"),
            ],
            **sizes,
        ),
        "masked_language_model without biases": lambda: ka.models.masked_language_model(
            50,
            hidden_dim=width,
            embedding=ka.models.TextEmbedding(normalization="layer_norm_no_bias"),
            encoder=bare("rotary", ka.masks.Window(3)),
            head=transform,
        ),
        "text_classifier transform": lambda: ka.models.text_classifier(
            50, 5, hidden_dim=width, encoder=bare("rotary"), head=transform
        ),
        "sequence_labeler": lambda: ka.models.sequence_labeler(50, 5, **sizes),
        "sequence_labeler, characters": lambda: ka.models.sequence_labeler(
            50, 5, embedding=embed_characters(30), mask=ka.masks.Window(3), **sizes
        ),
        "dependency_parser": lambda: ka.models.dependency_parser(
            50, 5, arc_dim=12, label_dim=8, **sizes
        ),
        "constituency_parser": lambda: ka.models.constituency_parser(50, 4, 3, **sizes),
        "object_detector": lambda: ka.models.object_detector(
            (16, 24), 3, embedding=stem, patch_size=1, **sizes
        ),
        "object_detector queries": lambda: ka.models.object_detector(
            (16, 24), 3, queries=5, num_decoder_layers=2, patch_size=4, **sizes
        ),
        "question_answerer": lambda: ka.models.question_answerer(
            50,
            no_answer=True,
            embedding=ka.models.TextEmbedding(num_segments=2, exact_match=True),
            **sizes,
        ),
        **{
            f"{builder} {stack.__name__}": lambda builder=builder, stack=stack: getattr(
                ka.models, builder
            )(9, hidden_dim=64, embedding=sound, encoder=stack.of_size(**sizes))
            for builder in ("speech_recognizer", "speech_to_text")
            for stack in (ka.models.ConformerEncoder, ka.models.TransformerEncoder)
        },
        "image_to_sequence": lambda: ka.models.image_to_sequence(
            (16, 24), 9, embedding=stem, patch_size=1, **sizes
        ),
        "masked_language_model": lambda: ka.models.masked_language_model(
            50, embedding=ka.models.TextEmbedding.of_bert(), **sizes
        ),
        "causal_language_model": lambda: ka.models.causal_language_model(50, **sizes),
        "encoder_decoder": lambda: ka.models.encoder_decoder(50, structure="t5_1.1", **sizes),
        "seq2seq_transformer": lambda: ka.models.seq2seq_transformer(50, 40, **sizes),
    }


def test_every_builder_is_listed():
    """`seq2seq_recurrent` runs in loops, which are not for GPUs."""
    expected = list_builders() - {"seq2seq_recurrent"}
    listed = {name.replace(",", " ").split()[0] for name in builders()}
    assert_lists("builders() of tests/export/test_gpu_sweep.py", listed, expected)


def export(model, point, batches, path, quantization=None):
    """Writes a model of fixed shapes, and returns the cases to compare it on."""
    checked = [cases.Case(batch, cases.run_model(point, batch)) for batch in batches]
    endpoint.save_endpoints(model, [point], path.with_suffix(""), MASK_CONSTANT)
    content = convert.convert_saved_model(
        path.with_suffix(""), [point], model, quantization=get_quantization(quantization)
    )
    path.write_bytes(content)
    return checked


def export_case(case, path):
    model = case.model(case.make(), sizes=SIZES)
    randomize(model)
    point = endpoint.make_endpoint(model)
    batches = [
        {
            t.name: x.astype(t.dtype)
            for t, x in zip(point.inputs, case.arrays(SIZES, seed), strict=True)
        }
        for seed in (0, 1)
    ]
    return export(model, point, batches, path)


def export_builder(make, path, quantization=None):
    keras.utils.set_random_seed(0)
    model = make()
    randomize(model)
    length = 12 if any(None in tensor.shape[1:] for tensor in model.inputs) else None
    point = endpoint.make_endpoint(model, 1, length)
    batches = [case.inputs for case in cases.make_cases(model, point)[0]]
    return export(model, point, batches, path, quantization)


def run_files(files, delegate):
    """dict, name -> (`Delegation`, the largest error per unit of the largest number)."""
    jobs = [
        delegate.Job(path, "serving_default", tuple(case.inputs for case in checked))
        for path, checked in files.values()
    ]
    result = zip(files.items(), delegate.run_jobs(jobs), strict=True)
    return {name: (one, error_of(checked, one)) for (name, (_, checked)), one in result}


def error_of(checked, result):
    if result.failure is not None:
        return None
    errors = [
        parity.max_abs_error / max(1.0, np.abs(case.outputs[parity.output]).max())
        for case, inputs in zip(checked, result.outputs, strict=True)
        for parity in measure_parity(case, inputs, signature="", runtime="GPU delegate")
    ]
    return max(errors)


def list_surprises(results):
    """Return {name: result} for all results that differ from the tables."""
    surprises = {}
    for name, (result, error) in results.items():
        right = result.failure is None and error <= 1e-4
        if right:
            state = "whole" if result.fully_accelerated else "partial"
        else:
            state = "wrong"
        target = {"whole"}
        if name in PARTIAL:
            target = {"partial"}
        if name in WRONG:  # of memory that nobody wrote: now and then it holds the right numbers
            target = {"wrong", "partial"}
        if state not in target:
            surprises[name] = (state, error, result.failure, result.refused)
    return surprises


@pytest.mark.sweep
@pytest.mark.parametrize("start", range(0, len(CASES), 12))
def test_layers(start, tmp_path):
    delegate, files = find_delegate(), {}
    for i, name in enumerate(list(CASES)[start : start + 12]):
        files[name] = tmp_path / f"{i}.tflite", export_case(CASES[name], tmp_path / f"{i}.tflite")
    assert not list_surprises(run_files(files, delegate))


def name_of(family, part):
    part = type(part).__name__ if isinstance(part, keras.layers.Layer) else part
    return f"{family} {part}"


@pytest.mark.sweep
@pytest.mark.parametrize("start", range(0, len(WITH_PARTS), 12))
def test_parts(start, tmp_path):
    delegate, files = find_delegate(), {}
    for i, (family, part) in enumerate(WITH_PARTS[start : start + 12]):
        path = tmp_path / f"{i}.tflite"
        files[name_of(family, part)] = path, export_case(case_with(family, part), path)
    assert not list_surprises(run_files(files, delegate))


@pytest.mark.parametrize("name", sampled(builders(), 2))
def test_builders_run_whole(name, tmp_path):
    """Float32 files equal the model. Smaller files equal the interpreter."""
    delegate, files = find_delegate(), {}
    # A mean and a maximum have no weights: smaller files are those of the other poolings.
    weightless = name.endswith((" mean", " max"))
    for quantization in (None,) if weightless else (None, "float16", "int8_weights"):
        path = tmp_path / f"{quantization}.tflite"
        files[quantization] = path, export_builder(builders()[name], path, quantization)
    allowed = {None: 1e-4, "float16": 1e-2, "int8_weights": 0.2}
    for quantization, (result, error) in run_files(files, delegate).items():
        assert result.failure is None, (quantization, result.failure)
        assert result.fully_accelerated, (quantization, result.refused)
        least = 0.0 if quantization is None else error_of_interpreter(*files[quantization])
        assert error <= max(allowed[quantization], 1.1 * least), (quantization, error, least)


def error_of_interpreter(path, checked):
    """Measure the error of rounded weights, which may be large for these random weights."""
    execute = runner.LiteRT(path, "serving_default")
    outputs = tuple(execute(case.inputs) for case in checked)
    return error_of(checked, gpu_delegate.Delegation(outputs))


STEPS = {
    "causal_language_model": {},  # rotary: sine and cosine of where a step is
    "encoder_decoder": {"structure": "t5_1.1"},
    "seq2seq_transformer": {},
}


@pytest.mark.sweep
@pytest.mark.parametrize("quantization", [None, "float16", "int8_weights"])
@pytest.mark.parametrize("name", STEPS)
def test_steps_of_decoders_run_whole(name, quantization, tmp_path):
    """Also check `encode` and `prefill`. Loops in files are not for GPUs."""
    find_delegate()
    keras.utils.set_random_seed(0)
    sizes = (50, 40) if name == "seq2seq_transformer" else (50,)
    common = {"num_layers": 1, "num_heads": 2, "hidden_dim": 64, "intermediate_dim": 96}
    begin = {} if name == "causal_language_model" else {"start_token_id": 1}
    report = ka.export.to_litert(
        getattr(ka.models, name)(*sizes, **common, **STEPS[name]),
        tmp_path / "m.tflite",
        quantization=quantization,
        generate=ka.export.Generation([], max_length=24, end_token_id=2, **begin),
        batch_size=1,
        sequence_length=8,
        compatible_with="gpu",
    )
    (text,) = [str(runtime) for runtime in report.runtimes if "GPU" in str(runtime)]
    assert "ran with all operators on the GPU" in text
