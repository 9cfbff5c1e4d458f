"""Every registered layer and part keeps the contract. Each needs a case in this file."""

import inspect

import keras
import numpy as np
import pytest

import keras_attention as ka
from keras_attention.blocks import residuals
from keras_attention.blocks.inner_layers import revive_layer
from keras_attention.core.part import Part
from keras_attention.training.scheduled_sampling import TeacherForcing
from tests import contract
from tests.backends.marks import slow_on_tensorflow
from tests.contract import Case
from tests.export.helpers import assert_exports
from tests.masks.examples import COMBINATIONS, EXAMPLES
from tests.tables import assert_lists

D, N, H = 12, 3, 4


def attention(**kwargs):
    return lambda: ka.attention.MultiHeadAttention(N, H, **kwargs)


def block(**kwargs):
    return lambda: ka.blocks.EncoderBlock(
        attention=ka.attention.MultiHeadAttention(N, H),
        feed_forward=ka.blocks.FeedForward(10),
        **kwargs,
    )


def decoder_block(**kwargs):
    return lambda: ka.blocks.DecoderBlock(
        ka.attention.MultiHeadAttention(N, H, mask="causal"),
        ka.attention.MultiHeadAttention(N, H),
        ka.blocks.FeedForward(10),
        **kwargs,
    )


def remembering(memorizing=False):
    """Call a block on an empty memory, with the new memory as an output."""
    tokens = keras.Input((None,), dtype="int32")
    attention = ka.attention.MultiHeadAttention(N, H, mask="causal", position="alibi")
    if memorizing:
        attention = ka.attention.MemorizingAttention(N, H, 6, num_neighbors=2, mask="causal")
    x = ka.blocks.TokenEmbedding(30, D)(tokens)
    x = ka.blocks.EncoderBlock(attention, ka.blocks.FeedForward(10))(x)
    return ka.attention.SegmentRecurrence(keras.Model(tokens, x), 0 if memorizing else 4)


def feed_forward(*args):
    return ka.blocks.FeedForward(10, *args)


def experts(**kwargs):
    return lambda: ka.blocks.MixtureOfExperts([feed_forward() for _ in range(3)], **kwargs)


def decoder(cell=None, attention="bahdanau", coverage_loss=0.0, **kwargs):
    def make():
        inner = cell() if cell else keras.layers.GRUCell(5)
        inner = ka.recurrent.AttentionCell(inner, attention, **kwargs)
        return ka.recurrent.RecurrentDecoder(inner, coverage_loss)

    return make


def stacked():
    return keras.layers.StackedRNNCells([keras.layers.LSTMCell(5), keras.layers.LSTMCell(7)])


def two_passes():
    """Labels for a model whose only input is tokens."""
    ids = keras.Input((None,), dtype="int32", name="target_ids")
    logits = keras.layers.Dense(30)(keras.layers.Embedding(30, D)(ids))
    return OfTarget(ka.training.TwoPasses(keras.Model({"target_ids": ids}, logits)))


class Rotating(keras.layers.Layer):
    """Lets a part of one family run as a layer of its own, so that the contract can call it."""


HEADS = (f"B T {N} {H}", f"B S {N} {H}")
SOFTMAX = {"key/bias": "softmax does not see what is added to all scores of a row"}

CASES = {
    "MultiHeadAttention": Case(attention(), (f"B T {D}", f"B S {D}"), frozen=SOFTMAX),
    "MultiHeadAttention grouped, gated": Case(
        lambda: ka.attention.MultiHeadAttention(
            4, H, num_key_value_heads=2, use_gate=True, value_dim=5, normalizer="sigmoid"
        ),
        (f"B T {D}", f"B S {D}"),
    ),
    "MultiHeadAttention over axes": Case(
        attention(attention_axes=(2,)), (f"B T S {D}", f"B T S {D}"), frozen=SOFTMAX
    ),
    "MultiHeadAttention rms_norm": Case(
        attention(qk_norm="rms_norm", position="rotary"), (f"B T {D}", f"B S {D}")
    ),
    "MultiHeadAttention layer_norm": Case(
        attention(qk_norm="layer_norm"), (f"B T {D}", f"B S {D}")
    ),
    "MultiHeadAttention sink": Case(attention(sink=True, mask="causal"), (f"B T {D}", f"B S {D}")),
    "MultiHeadAttention memory slots": Case(
        attention(num_memory_slots=2, mask="causal", position=["rotary", "alibi"]),
        (f"B T {D}", f"B S {D}"),
    ),
    "MultiHeadAttention talking heads": Case(
        attention(talking_heads=True, mask="causal"), (f"B T {D}", f"B S {D}"), frozen=SOFTMAX
    ),
    "MultiHeadAttention all structures": Case(
        lambda: ka.attention.MultiHeadAttention(
            4,
            H,
            num_key_value_heads=2,
            use_gate=True,
            qk_norm="rms_norm",
            sink=True,
            num_memory_slots=3,
            talking_heads=True,
            dropout=0.1,
        ),
        (f"B T {D}", f"B S {D}"),
    ),
    "ResidualAttention": Case(
        lambda: ka.attention.ResidualAttention(N, H), (f"B T {D}", f"B S {D}"), frozen=SOFTMAX
    ),
    "MemorizingAttention": Case(
        lambda: ka.attention.MemorizingAttention(N, H, 6, num_neighbors=2),
        (f"B T {D}", f"B T {D}"),
        frozen={**SOFTMAX, "memory_gate": "closed where nothing is remembered"},
    ),
    "SegmentRecurrence": Case(remembering, ("int30 B T",), frozen=SOFTMAX),
    "SegmentRecurrence of MemorizingAttention": Case(
        lambda: remembering(memorizing=True),
        ("int30 B T",),
        frozen={**SOFTMAX, "memory_gate": "closed where nothing is remembered"},
    ),
    "Attention": Case(lambda: ka.attention.Attention(), (f"B T {D}", f"B S {D}"), listed=True),
    "DifferentialAttention": Case(
        lambda: ka.attention.DifferentialAttention(N, H), (f"B T {D}", f"B S {D}")
    ),
    "DifferentialAttention grouped": Case(
        lambda: ka.attention.DifferentialAttention(
            4, H, value_dim=5, depth=2, num_key_value_heads=2, use_bias=True, position="rotary"
        ),
        (f"B T {D}", f"B S {D}"),
        frozen=SOFTMAX,
    ),
    "LatentAttention": Case(
        lambda: ka.attention.LatentAttention(N, H, latent_dim=5, rotary_dim=2),
        (f"B T {D}", f"B S {D}"),
    ),
    "LatentAttention, latent queries": Case(
        lambda: ka.attention.LatentAttention(
            N, H, latent_dim=5, rotary_dim=2, query_latent_dim=6, value_dim=3, mask="causal"
        ),
        (f"B T {D}", f"B S {D}"),
    ),
    "LinearAttention": Case(
        lambda: ka.attention.LinearAttention(N, H, value_dim=5), (f"B T {D}", f"B S {D}")
    ),
    "LinearAttention causal, grouped": Case(
        lambda: ka.attention.LinearAttention(
            4, H, num_key_value_heads=2, mask="causal", chunk_size=2
        ),
        (f"B T {D}", f"B T {D}"),
    ),
    "HeadProjection": Case(lambda: ka.attention.HeadProjection((N, H)), (f"B T {D}",)),
    "TokenEmbedding": Case(
        lambda: ka.blocks.TokenEmbedding(30, D, position=ka.positions.Learned(9), scale=True),
        ("int30 B T",),
    ),
    "TokenEmbedding and back": Case(
        lambda: ThereAndBack(ka.blocks.TokenEmbedding(30, D, logit_bias=True, logit_scale=0.3)),
        ("int30 B T",),
    ),
    "PositionsInDocuments": Case(ka.blocks.PositionsInDocuments, ("int3 B T",)),
    "SegmentEmbedding": Case(lambda: ka.blocks.SegmentEmbedding(2), (f"B T {D}", "int2 B T")),
    "TokenDropout": Case(lambda: ka.blocks.TokenDropout(0.5), ("int30 B T",)),
    "CharacterEmbedding": Case(
        lambda: ka.blocks.CharacterEmbedding(30, 5, filters=4), ("int30 B T 6",)
    ),
    "WordEmbedding": Case(
        lambda: ka.blocks.WordEmbedding(
            ka.blocks.TokenEmbedding(30, 7), ka.blocks.CharacterEmbedding(30, 5, filters=4), D
        ),
        ("int30 B T", "int30 B T 6"),
    ),
    "PatchEmbedding": Case(
        lambda: ka.blocks.PatchEmbedding(D, (2, 3), num_prefix_tokens=2, position="learned"),
        ("B 4 6 2",),
    ),
    "ConvolutionStem": Case(lambda: ka.blocks.ConvolutionStem((4, 5)), ("B 8 6 2",)),
    "GreedyCTCDecoder": Case(ka.blocks.GreedyCTCDecoder, ("B T 4",)),
    "FixedLength": Case(lambda: ka.blocks.FixedLength(6), (f"B T {D}",)),
    "FrameConvolutions": Case(lambda: ka.blocks.FrameConvolutions(D), (f"B T {D}",)),
    "LengthMask": Case(ka.blocks.LengthMask, (f"B T {D}", "int3 B")),
    **{
        f"LogMelSpectrogram {settings}": Case(
            lambda settings=settings: ka.blocks.LogMelSpectrogram(
                3, settings, sampling_rate=100, sequence_length=4, sequence_stride=1
            ),
            ("B T",),
        )
        for settings in ("whisper", "kaldi")
    },
    "SpecAugment": Case(lambda: ka.blocks.SpecAugment(frequency_mask_size=5), (f"B T {D}",)),
    "FilterAugment": Case(ka.blocks.FilterAugment, (f"B T {D}",)),
    "ConvolutionSubsampling": Case(
        lambda: ka.blocks.ConvolutionSubsampling(D, 4, filters=3), (f"B T {D}",)
    ),
    "ConvolutionSubsampling causal": Case(
        lambda: ka.blocks.ConvolutionSubsampling(D, 2, filters=3, causal=True), (f"B T {D}",)
    ),
    "BoxHead": Case(lambda: ka.blocks.BoxHead(5, points=(2, 3)), ("B 6 4",)),
    "BoxHead of learned points": Case(lambda: ka.blocks.BoxHead(5, points=6), ("B 6 4",)),
    "ObjectQueries": Case(lambda: ka.blocks.ObjectQueries(4, 6), (f"B T {D}",)),
    "PositionEmbedding": Case(
        lambda: ka.blocks.PositionEmbedding(ka.positions.Learned(20)), (f"B T {D}",)
    ),
    "PrefixTokens": Case(lambda: ka.blocks.PrefixTokens(2), (f"B T {D}",)),
    "FeedForward": Case(lambda: ka.blocks.FeedForward(10), (f"B T {D}",)),
    "FeedForward gated": Case(lambda: ka.blocks.FeedForward(10, "geglu_tanh"), (f"B T {D}",)),
    "RMSNormalization": Case(lambda: ka.blocks.RMSNormalization(), (f"B T {D}",)),
    "LayerScale": Case(lambda: ka.blocks.LayerScale(0.3), (f"B T {D}",)),
    "EncoderBlock": Case(block(), (f"B T {D}",), frozen=SOFTMAX),
    "EncoderBlock post, rms": Case(
        block(norm="post", normalization="rms_norm"), (f"B T {D}",), frozen=SOFTMAX
    ),
    "EncoderBlock sandwich": Case(
        block(norm="sandwich", layer_scale=0.1, dropout=0.1, stochastic_depth=0.1),
        (f"B T {D}",),
        frozen=SOFTMAX,
    ),
    "EncoderBlock resi_dual": Case(
        block(norm="resi_dual"), (f"B T {D}", f"B T {D}"), listed=True, frozen=SOFTMAX
    ),
    "DecoderBlock": Case(decoder_block(), (f"B T {D}", "B S 7"), frozen=SOFTMAX),
    "DecoderBlock sandwich, rms": Case(
        decoder_block(norm="sandwich", normalization="rms_norm", layer_scale=0.1, dropout=0.1),
        (f"B T {D}", "B S 7"),
        frozen=SOFTMAX,
    ),
    "ParallelBlock": Case(
        lambda: ka.blocks.ParallelBlock(attention()(), feed_forward()),
        (f"B T {D}",),
        frozen=SOFTMAX,
    ),
    "MacaronBlock": Case(
        lambda: ka.blocks.MacaronBlock(feed_forward(), attention()(), feed_forward()),
        (f"B T {D}",),
        frozen=SOFTMAX,
    ),
    "ConformerBlock": Case(
        lambda: ka.blocks.ConformerBlock(
            feed_forward("silu"),
            attention(position="rotary")(),
            feed_forward("silu"),
            ka.blocks.ConvolutionModule(3),
        ),
        (f"B T {D}",),
        frozen=SOFTMAX,
    ),
    "ConvolutionModule": Case(lambda: ka.blocks.ConvolutionModule(3), (f"B T {D}",)),
    "ConvolutionModule causal": Case(
        lambda: ka.blocks.ConvolutionModule(4, normalization="layer_norm", causal=True),
        (f"B T {D}",),
    ),
    "ConvolutionModule masked": Case(
        lambda: WithMask(ka.blocks.ConvolutionModule(3)), (f"B T {D}", "bool B T")
    ),
    "MixtureOfExperts": Case(experts(), (f"B T {D}",)),
    "MixtureOfExperts switch": Case(experts(top_k=1, capacity_factor=1.25), (f"B T {D}",)),
    "MixtureOfExperts masked": Case(lambda: WithMask(experts()()), (f"B T {D}", "bool B T")),
    "MixtureOfExperts masked, within capacity": Case(
        lambda: WithMask(experts(capacity_factor=1.0)()), (f"B T {D}", "bool B T")
    ),
    "EncoderBlock of experts": Case(
        lambda: ka.blocks.EncoderBlock(attention()(), experts()()), (f"B T {D}",), frozen=SOFTMAX
    ),
    "Repeat": Case(
        lambda: ka.blocks.Repeat(block()(), 3, coordinates=True), (f"B T {D}",), frozen=SOFTMAX
    ),
    "Scan": Case(lambda: ka.blocks.Scan([block()(), block()()]), (f"B T {D}",), frozen=SOFTMAX),
    "EncoderBlock, rematerialised": Case(
        block(norm="sandwich", dropout=0.1, remat=True), (f"B T {D}",), frozen=SOFTMAX
    ),
    "ResidualWeight": Case(lambda: ka.blocks.ResidualWeight(0.3), (f"B T {D}",)),
    **{
        f"Pooling {mode}": Case(lambda mode=mode: ka.blocks.Pooling(mode), (f"B T {D}",))
        for mode in ("mean", "max", "root_sum", "cls", "attention")
    },
    **{
        f"Pooling {mode}": Case(
            lambda mode=mode: ka.blocks.Pooling(mode, num_prefix_tokens=1), (f"B T {D}",)
        )
        for mode in ("prefix", "cls_mean")
    },
    "PathDropout": Case(lambda: ka.blocks.PathDropout(), (f"B {D}", "B 7"), listed=True),
    "AttentionPooling": Case(
        lambda: ka.blocks.AttentionPooling(
            ka.attention.MultiHeadAttention(N, H), ka.blocks.FeedForward(10)
        ),
        (f"B T {D}",),
        frozen=SOFTMAX,
    ),
    "EncoderBlock without biases": Case(
        block(norm=ka.blocks.PreNorm(first_norm=False), normalization="layer_norm_no_bias"),
        (f"B T {D}",),
        frozen=SOFTMAX,
    ),
    "Biaffine": Case(lambda: ka.blocks.Biaffine(5), (f"B T {D}",)),
    "Biaffine of labels, masked": Case(
        lambda: WithMask(ka.blocks.Biaffine(5, 3, dropout=0.1)), (f"B T {D}", "bool B T")
    ),
    "ConditionalRandomField": Case(
        lambda: WithMask(ka.blocks.ConditionalRandomField(["O", "B-x", "I-x"])),
        ("B T 3", "bool B T"),
    ),
    "ContrastiveLogits": Case(
        lambda: ka.blocks.ContrastiveLogits(0.5, dimensions=[D, 2], bias=-1.0), (f"B {D}", f"4 {D}")
    ),
    "SpanLogits": Case(lambda: ka.blocks.SpanLogits(no_answer=True), ("B T 2", "int2 B T")),
    "ParserState": Case(lambda: ka.blocks.ParserState(5, 4), ("int13 B T", f"B S {D}")),
    "AllowedLogits": Case(lambda: ka.blocks.AllowedLogits(), ("B T 6", "int2 B T 6")),
    "FirstOf": Case(lambda: ka.blocks.FirstOf(4), (f"B T {D}", "int30 B T")),
    "RecurrentEncoder": Case(
        lambda: ka.recurrent.RecurrentEncoder(keras.layers.GRUCell(5)), (f"B T {D}",)
    ),
    "RecurrentEncoder stacked, masked": Case(
        lambda: WithMask(ka.recurrent.RecurrentEncoder(keras.layers.LSTMCell(5), 2, dropout=0.1)),
        (f"B T {D}", "bool B T"),
    ),
    "Bridge": Case(lambda: ka.recurrent.Bridge([5, 7]), ("B 4", "B 3"), listed=True),
    "AttentionCell bahdanau": Case(decoder(score="concat"), (f"B T {D}", f"B S {D}")),
    "AttentionCell luong": Case(
        decoder(stacked, "luong", attention_dim=6), (f"B T {D}", f"B S {D}")
    ),
    "AttentionCell coverage": Case(
        decoder(attention="luong", coverage=True, score="additive", input_feeding=False),
        (f"B T {D}", f"B S {D}"),
    ),
    "LocalWindow": Case(
        decoder(attention="luong", local=ka.recurrent.LocalWindow(2, units=3)),
        (f"B T {D}", f"B S {D}"),
    ),
    "RecurrentDecoder": Case(
        decoder(coverage=True, coverage_loss=0.5, attention_dim=6), (f"B T {D}", f"B S {D}")
    ),
    "FeedbackDecoder": Case(
        lambda: ka.recurrent.FeedbackDecoder(
            ka.blocks.TokenEmbedding(30, 4),
            decoder()(),
            keras.layers.Dense(30),
            feedback="sample",
            dropout=0.1,
        ),
        ("int30 B T", f"B S {D}"),
    ),
    "TwoPasses": Case(two_passes, ("int30 B T",)),
    "Cosine": Case(lambda: ka.scores.Cosine(), HEADS),
    "Bilinear": Case(lambda: ka.scores.Bilinear(), HEADS),
    "Concat": Case(lambda: ka.scores.Concat(units=5), HEADS),
    "Additive": Case(lambda: ka.scores.Additive(units=5), HEADS),
    "Learned": Case(lambda: ka.positions.Learned(9), (f"B T {D}",)),
    "RelativeBias": Case(
        lambda: inside_attention("position", ka.positions.RelativeBias(8, 20)),
        (f"B T {D}", f"B S {D}"),
        frozen=SOFTMAX,
    ),
    "Learned2D": Case(lambda: ka.positions.Learned2D((2, 3)), (f"B T {D}",)),
    "LearnedALiBi": Case(
        lambda: inside_attention("position", "learned_alibi"),
        (f"B T {D}", f"B S {D}"),
        frozen=SOFTMAX,
    ),
    "Shaw": Case(
        lambda: inside_attention("position", ka.positions.Shaw(2)),
        (f"B T {D}", f"B S {D}"),
        frozen=SOFTMAX,
    ),
    "TransformerXL": Case(
        lambda: inside_attention("position", "transformer_xl"),
        (f"B T {D}", f"B S {D}"),
        frozen=SOFTMAX,
    ),
    "Disentangled": Case(
        lambda: inside_attention("position", ka.positions.Disentangled(2)), (f"B T {D}", f"B S {D}")
    ),
    "SwinBias": Case(
        lambda: Placed(inside_attention("position", ka.positions.SwinBias((2, 4), 1))),
        (f"B T {D}", f"B S {D}"),
        frozen=SOFTMAX,
    ),
    "ContinuousBias": Case(
        lambda: Placed(
            inside_attention("position", ka.positions.ContinuousBias((2, 4), hidden_dim=5))
        ),
        (f"B T {D}", f"B S {D}"),
        frozen=SOFTMAX,
    ),
    "Several": Case(  # the registered name of CombinedPositions
        lambda: inside_attention("position", ["alibi", "relative_bias"]),
        (f"B T {D}", f"B S {D}"),
        frozen=SOFTMAX,
    ),
}

PARTS = {
    "score": list(ka.scores.NAMES),
    "normalizer": [
        *(name for name in ka.normalizers.NAMES if name not in ("top_k", "activation")),
        ka.normalizers.Softmax(temperature=2.0, soft_cap=3.0, plus_one=True),
        ka.normalizers.Entmax(1.3),
        ka.normalizers.TopK(3),
        ka.normalizers.Activation("softplus"),
    ],
    "mask": [*EXAMPLES, *COMBINATIONS],
    "feature map": list(ka.attention.feature_maps.NAMES),
    "position": [
        "rotary",
        ka.positions.Rotary(layout="interleaved", rotary_dim=2),
        "alibi",
        ka.positions.ALiBi(causal=True),
        "relative_bias",
        ka.positions.RelativeBias(bidirectional=False),
        ["rotary", "relative_bias"],
        ka.positions.Rotary(grid=(2, 3), prefix=1),
        *(
            ka.positions.Rotary(scaling=scaling)
            for scaling in (
                ka.positions.scalings.Linear(2),
                ka.positions.scalings.NTK(2),
                ka.positions.scalings.DynamicNTK(2, original_length=4),
                ka.positions.scalings.YaRN(2, original_length=40),
                ka.positions.scalings.LongRoPE((1, 1), (1, 2), original_length=4, factor=2),
                ka.positions.scalings.Llama3(2, original_length=40),
            )
        ),
        ka.positions.XPos(scale_base=20),
        "learned_alibi",
        ka.positions.Shaw(2),
        "transformer_xl",
        ka.positions.Disentangled(6, num_buckets=4),
        ka.positions.SwinBias((2, 3), 1),
        ka.positions.ContinuousBias((2, 3), hidden_dim=5),
    ],
    "residual": [
        *(name for name in residuals.NAMES if name != "deep_norm"),
        ka.blocks.DeepNorm(3),
        ka.blocks.DeepNorm(3, num_decoder_layers=2, scale_initial=False),
    ],
    "added position": [
        "sinusoidal",
        ka.positions.Sinusoidal(layout="concatenated"),
        ka.positions.Learned(16),
        ka.positions.Sinusoidal2D((2, 3), 1),
        ka.positions.Learned2D((2, 3), 1),
        "scalar",
        ka.positions.Scalar(scaled=False),
    ],
}
WITH_PARTS = [(family, part) for family, parts in PARTS.items() for part in parts]


def inside_attention(argument, part):
    return ka.attention.MultiHeadAttention(N, H, **{argument: part})


def case_with(family, part):
    """Return a layer that uses `part`, on padded input. The mask is the second call argument."""
    if family == "added position":
        return Case(lambda: ka.blocks.TokenEmbedding(30, D, position=part), ("int30 B T",))
    if family == "feature map":
        return Case(
            lambda: Masked(ka.attention.LinearAttention(N, H, feature_map=part, mask="causal")),
            (f"B T {D}", "bool B T"),
        )
    if family == "residual":
        return Case(lambda: WithMask(block(norm=part)()), (f"B T {D}", "bool B T"))
    return Case(lambda: Masked(inside_attention(family, part)), (f"B T {D}", "bool B T"))


def side_by_side(family):
    """Build one model with all parts of a family, with an output for each that has its name.

    This saves time: most of an attention layer is projections, which do not depend on the part.
    """
    inputs = (f"B T {N} {H}", "bool B T")
    if family in ("score", "normalizer", "mask", "position"):
        layers = {str(part): Attending(family, part) for part in PARTS[family]}
    else:
        cases = {str(part): case_with(family, part) for part in PARTS[family]}
        layers = {name: case.make() for name, case in cases.items()}
        (inputs,) = {case.inputs for case in cases.values()}

    def call(*tensors):
        return {f"{family} {name}": layer(*tensors) for name, layer in layers.items()}

    return Case(lambda: call, inputs)


def placed(part, **tensors):
    """Make positions for a grid that has as many cells as there are tokens."""
    if not getattr(part, "grid", None):
        return {}
    return {name: keras.ops.arange(keras.ops.shape(x)[1]) for name, x in tensors.items()}


@keras.saving.register_keras_serializable(package="tests")
class Placed(keras.layers.Layer):
    """Attention with the positions of tokens as an argument."""

    def __init__(self, layer, **kwargs):
        super().__init__(**kwargs)
        self.layer = revive_layer("layer", layer)

    def build(self, x_shape, y_shape):
        if not self.layer.built:
            self.layer.build(x_shape, y_shape)

    def call(self, x, y, training=None):
        where = placed(self.layer.position, query_positions=x, value_positions=y)
        return self.layer(x, y, training=training, **where)

    def compute_output_shape(self, x_shape, y_shape):
        return x_shape

    def compute_output_spec(self, x, y, training=None):
        return keras.KerasTensor(x.shape, self.compute_dtype)

    def get_config(self):
        return {**super().get_config(), "layer": keras.saving.serialize_keras_object(self.layer)}


class Attending(keras.layers.Layer):
    """Heads that attend to one another by a part, without projections. Padding is an input."""

    def __init__(self, family, part):
        super().__init__()
        part = _get(family, part)
        self.family, self.part = family, type(part).from_config(part.get_config())

    def build(self, heads_shape, padding_shape):
        if isinstance(self.part, keras.layers.Layer):
            self.part.build(*[heads_shape] * (2 if self.family == "score" else 1))

    def call(self, heads, padding):
        visibility = ka.attention.Visibility(
            self.part if self.family == "mask" else None,
            key_mask=padding,
            **placed(self.part, query_positions=heads, key_positions=heads),
        )
        part = {self.family: self.part} | {"mask": visibility}
        return ka.attention.attend(*(heads, heads, heads), **part, return_weights=False)

    def compute_output_shape(self, heads_shape, padding_shape):
        return heads_shape


@keras.saving.register_keras_serializable(package="tests")
class WithMask(keras.layers.Layer):
    """A layer whose padding mask is an input."""

    def __init__(self, layer, **kwargs):
        super().__init__(**kwargs)
        self.layer = revive_layer("layer", layer)

    def build(self, x_shape, padding_shape):
        if not self.layer.built:
            self.layer.build(x_shape)

    def call(self, x, padding, training=None):
        return self.layer(x, mask=padding, training=training)

    def compute_output_shape(self, x_shape, padding_shape):
        return self.layer.compute_output_shape(x_shape)

    def compute_output_spec(self, x, padding, training=None):
        return self.layer.compute_output_spec(x)

    def get_config(self):
        return {**super().get_config(), "layer": keras.saving.serialize_keras_object(self.layer)}


@keras.saving.register_keras_serializable(package="tests")
class ThereAndBack(keras.layers.Layer):
    """From tokens to vectors and to logits. Layers without a policy get the policy of this one."""

    def __init__(self, layer, **kwargs):
        super().__init__(**kwargs)
        self.layer = revive_layer("layer", layer)

    def build(self, shape):
        if not self.layer.built:
            self.layer.build(shape)

    def call(self, ids):
        return keras.ops.cast(self.layer(self.layer(ids), reverse=True), self.compute_dtype)

    def compute_output_shape(self, shape):
        return (*shape, self.layer.vocabulary_size)

    def get_config(self):
        return {**super().get_config(), "layer": keras.saving.serialize_keras_object(self.layer)}


@keras.saving.register_keras_serializable(package="tests")
class OfTarget(keras.layers.Layer):
    """A layer of a dict, whose one entry is an input."""

    def __init__(self, layer, **kwargs):
        super().__init__(**kwargs)
        self.layer = revive_layer("layer", layer)

    def build(self, shape):
        pass

    def call(self, x, training=None):
        return self.layer({"target_ids": x}, training=training)

    def compute_output_spec(self, x, training=None):
        return self.layer.compute_output_spec({"target_ids": x})

    def get_config(self):
        return {**super().get_config(), "layer": keras.saving.serialize_keras_object(self.layer)}


class Masked(keras.layers.Layer):
    """Self-attention whose padding is an input."""

    def __init__(self, attention):
        super().__init__()
        self.attention = attention

    def build(self, x_shape, padding_shape):
        self.attention.build(x_shape, x_shape)

    def call(self, x, padding):
        parts = [getattr(self.attention, name, None) for name in ("position", "mask")]
        where = {k: p for part in parts for k, p in placed(part, query_positions=x).items()}
        return self.attention(x, x, value_mask=padding, **where)

    def compute_output_shape(self, x_shape, padding_shape):
        return x_shape


def registered():
    for folder in ka.__all__:
        getattr(ka, folder)
    prefix = "keras_attention>"
    return {
        name.removeprefix(prefix): cls
        for name, cls in keras.saving.get_custom_objects().items()
        if name.startswith(prefix) and isinstance(cls, type)
    }


def test_every_registered_layer_has_a_case():
    layers = {name for name, cls in registered().items() if issubclass(cls, keras.layers.Layer)}
    layers -= {"JointModel"}  # trains a model that there is: tests/training/test_joint_model.py
    listed = layers & {name.split()[0] for name in CASES}
    assert_lists("CASES of tests/test_contract.py", listed, layers)


def test_every_registered_part_is_exported_inside_a_layer():
    parts = {cls for cls in registered().values() if issubclass(cls, Part)}
    parts = {cls for cls in parts if not issubclass(cls, TeacherForcing)}  # for callbacks
    # What chooses tokens is exported in whole loops, by tests/export/generation.
    parts = {cls for cls in parts if "keras_attention.generation" not in cls.__module__}
    used = set()
    for family, part in WITH_PARTS:
        used |= _classes(_get(family, part))
    table = "PARTS of tests/test_contract.py (masks: EXAMPLES of tests/masks/examples.py)"
    assert_lists(table, parts & used, parts)


def _get(family, part):
    families = {
        "score": ka.scores,
        "normalizer": ka.normalizers,
        "mask": ka.masks,
        "feature map": ka.attention.feature_maps,
        "residual": residuals,
        "position": ka.positions,
        "added position": ka.positions,
    }
    return families[family].get(part)


def _classes(part):
    """Return the classes of a part and of the parts inside it."""
    inner = [v for v in vars(part).values() if isinstance(v, Part)]
    for value in vars(part).values():
        inner += (
            [v for v in value if isinstance(v, Part)] if isinstance(value, (tuple, list)) else []
        )
    return {type(part)}.union(*map(_classes, inner))


# Names of layers that hold whole blocks or models.
HOLDERS = ("SegmentRecurrence", "ConformerBlock", "MacaronBlock", "DecoderBlock", "Scan", "Repeat")
STACKS = [name for name in CASES if name.startswith(HOLDERS)]
SLOW_STACKS = [
    pytest.param(name, marks=slow_on_tensorflow if name in STACKS else ()) for name in CASES
]


@pytest.fixture(params=list(CASES))
def case(request):
    return CASES[request.param]


def test_config(case):
    contract.check_config(case)


# Projections of heads are inside of layers, and the others take any axes: here the second input, of
# as many axes as before, does not fit.
ANY_AXES = ("HeadProjection", "MixtureOfExperts masked", "AllowedLogits", "TokenEmbedding and back")


@pytest.mark.parametrize("name", [name for name in CASES if not name.startswith(ANY_AXES)])
def test_a_missing_axis(name):
    contract.check_missing_axis(CASES[name])


@pytest.mark.parametrize("name", SLOW_STACKS)
def test_shapes(name):
    contract.check_shapes(CASES[name])


def test_gradients(case):
    contract.check_gradients(case)


NOT_QUANTIZED = {
    *("Attention", "TokenDropout", "PatchEmbedding", "ConvolutionStem", "PrefixTokens"),
    *("RMSNormalization", "LayerScale", "ResidualWeight", "Pooling", "RecurrentEncoder"),
    *(
        "FirstOf",
        "PathDropout",
        "ConditionalRandomField",
        "ContrastiveLogits",
        "SpanLogits",
        "AllowedLogits",
        "ParserState",
        "ObjectQueries",
        "GreedyCTCDecoder",
        "FixedLength",
        "FrameConvolutions",
        "LengthMask",
        "PositionEmbedding",
        "LogMelSpectrogram",
        "SpecAugment",
        "FilterAugment",
    ),
    *("Cosine", "Bilinear", "Concat", "Additive", "Learned", "Learned2D", "PositionsInDocuments"),
    "AttentionCell bahdanau",
}


def find_alike():
    """Names of cases of a layer that an earlier case has, and of parts of a layer of attention,
    which are in one model of `side_by_side` with all others: where time is short, both wait.
    """
    layers = [name.split()[0].rstrip(",") for name in CASES]
    families = (ka.positions.NAMES, ka.scores.NAMES, residuals.NAMES)
    parts = {part.__name__ for names in families for part in names.values()} | {"Several"}
    alike = {name for i, name in enumerate(CASES) if layers[i] in layers[:i]}
    return alike, {name for i, name in enumerate(CASES) if layers[i] in parts}


ALIKE, PARTS_ALONE = find_alike()


def slow_where_alike(names, prefixes=(), parts=pytest.mark.slow, on_tensorflow=()):
    """Return names as parameters, some of them with marks.

    Names in `ALIKE`, and names that begin with one of `others`, are slow. Names in `PARTS_ALONE`
    have the mark `parts`. Names in `on_tensorflow` are slow on TensorFlow.
    """
    marks = dict.fromkeys(on_tensorflow, slow_on_tensorflow)
    marks |= {name: pytest.mark.slow for name in names if name.startswith(tuple(prefixes))}
    marks |= dict.fromkeys(ALIKE, pytest.mark.slow) | dict.fromkeys(PARTS_ALONE, parts)
    return [pytest.param(name, marks=marks.get(name, ())) for name in names]


# Every kind of kernel that Keras quantizes: Dense, EinsumDense and Embedding.
QUANTIZED_QUICKLY = ("HeadProjection", "MultiHeadAttention", "TokenEmbedding", "Biaffine")
# What blocks are made of is exported by itself.
BLOCKS = (
    *("Parallel", "Macaron", "Conformer", "Repeat", "Scan", "Bridge"),
    *("Recurrent", "Feedback", "TwoPasses"),
)


@pytest.mark.parametrize("name", slow_where_alike(CASES, on_tensorflow=STACKS))
def test_saving(name, tmp_path):
    contract.check_saving(CASES[name], tmp_path)


@pytest.mark.parametrize("dtype", [pytest.param("float16", marks=pytest.mark.slow), "bfloat16"])
@pytest.mark.parametrize("name", slow_where_alike(CASES, on_tensorflow=STACKS))
def test_mixed_precision(name, dtype):
    contract.check_mixed_precision(CASES[name], dtype)


WITH_IDS = [name for name, case in CASES.items() if any(x.startswith("int") for x in case.inputs)]
# Zeros and ones are never rounded, and the two layers of this file pass their ids on.
OTHERS = {"AllowedLogits", "TokenEmbedding and back", "TwoPasses"}


@pytest.mark.parametrize("name", sorted(set(WITH_IDS) - OTHERS))
def test_ids_are_not_rounded(name):
    contract.check_ids(CASES[name])


@pytest.mark.parametrize("name", slow_where_alike(CASES))
def test_axes_of_weights_have_roles(name):
    contract.check_axes(CASES[name].model())


@pytest.mark.slow
def test_roles_are_of_weights_that_there_are():
    weights, declared = set(), set()
    for case in CASES.values():
        weights |= {weight for weight, *_ in contract.name_weights(case.model()).values()}
    for cls, _ in weights:
        declared |= {(cls, name) for name in getattr(cls, "weight_axes", ())}
    only_here = {(ka.positions.Learned2D, "prefix_table"), (ka.positions.Shaw, "value_table")}
    assert len(declared) > 25 and declared - weights <= only_here


def quantized():
    """Names of the cases with projections or tables of Keras's kinds."""
    return [name for name in CASES if not {name, name.split()[0].rstrip(",")} & NOT_QUANTIZED]


@pytest.mark.parametrize(
    "name",
    slow_where_alike(
        quantized(),
        BLOCKS,
        on_tensorflow=[name for name in quantized() if name not in QUANTIZED_QUICKLY],
    ),
)
def test_quantization(name, tmp_path):
    contract.check_quantization(CASES[name], tmp_path)


def test_layers_not_quantized_have_no_projections_to_quantize():
    names = [name for name in CASES if {name, name.split()[0]} & NOT_QUANTIZED]
    assert not [name for name in names if contract.projections(CASES[name].model())]


@pytest.mark.slow
@pytest.mark.parametrize("mode, tolerance", [("int4", 0.6), ("float8", 0.2)])
@pytest.mark.parametrize(
    "name",
    ["MultiHeadAttention all structures", "DifferentialAttention", "LatentAttention",
     "LinearAttention", "FeedForward gated", "EncoderBlock"],
)  # fmt: skip
def test_other_quantizations(name, mode, tolerance, tmp_path):
    contract.check_quantization(CASES[name], tmp_path, mode, tolerance)


@pytest.mark.slow
@pytest.mark.tensorflow
@pytest.mark.parametrize("name", slow_where_alike(CASES, BLOCKS, parts=pytest.mark.sweep))
def test_export(name):
    assert_exports(CASES[name])


@pytest.mark.slow
@pytest.mark.tensorflow
@pytest.mark.parametrize("family", PARTS)
def test_parts_export(family):
    assert_exports(side_by_side(family))


@pytest.mark.sweep  # test_parts_export has them in one model
@pytest.mark.tensorflow
@pytest.mark.parametrize("family, part", WITH_PARTS, ids=str)
def test_parts_export_alone(family, part):
    assert_exports(case_with(family, part))


@pytest.mark.parametrize("family, part", WITH_PARTS, ids=str)
def test_parts_keep_their_config(family, part):
    part = _get(family, part)
    again = type(part).from_config(part.get_config())
    assert again.get_config() == part.get_config()
    if isinstance(part, Part):
        assert again == part and hash(again) == hash(part)
    arguments = set(inspect.signature(type(part).__init__).parameters) - {"self", "kwargs", "args"}
    assert arguments <= set(part.get_config())


@pytest.mark.slow
@pytest.mark.parametrize("family, part", WITH_PARTS, ids=str)
def test_parts_in_mixed_precision(family, part):
    contract.check_mixed_precision(case_with(family, part), "bfloat16")


@pytest.mark.parametrize("family, part", WITH_PARTS, ids=str)
def test_parts_have_gradients(family, part):
    case = case_with(family, part)
    contract.check_gradients(Case(case.make, case.inputs, frozen=SOFTMAX))
    assert np.all([np.isfinite(w).all() for w in case.make().get_weights()])
