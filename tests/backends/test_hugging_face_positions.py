"""Parity with Hugging Face, in PyTorch, with its weights copied."""

import importlib
import math

import numpy as np
import pytest
import torch
import transformers
from keras import ops

from keras_attention import attention, normalizers, positions
from keras_attention.positions import alibi, scalings

RANDOM = np.random.default_rng(0)
T, N, H = 9, 3, 16

SCALINGS = [
    (scalings.Linear(4.0), {"rope_type": "linear"}),
    (scalings.DynamicNTK(4.0, 64), {"rope_type": "dynamic"}),
    (scalings.YaRN(4.0, 64), {"rope_type": "yarn"}),
    (
        scalings.YaRN(4.0, 64, 8, 2, 1.5, False),
        {
            "rope_type": "yarn",
            "beta_fast": 8,
            "beta_slow": 2,
            "attention_factor": 1.5,
            "truncate": False,
        },
    ),
    (
        scalings.LongRoPE((1,) * 8, (1, 2, 3, 4, 5, 6, 7, 8), 64, 4.0),
        {
            "rope_type": "longrope",
            "short_factor": [1.0] * 8,
            "long_factor": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0],
        },
    ),
    (
        scalings.Llama3(4.0, 64),
        {
            "rope_type": "llama3",
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
        },
    ),
]


def modeling(name):
    return importlib.import_module(f"transformers.models.{name}.modeling_{name}")


def array(x):
    return x.detach().numpy()


@pytest.mark.parametrize("scaling, parameters", SCALINGS, ids=lambda x: type(x).__name__)
@pytest.mark.parametrize("length", [50, 64, 65, 200])
def test_scalings(scaling, parameters, length):
    dynamic = parameters["rope_type"] == "dynamic"
    config = transformers.LlamaConfig(
        hidden_size=32,
        num_attention_heads=2,
        max_position_embeddings=64 if dynamic else 256,
        rope_parameters={
            "rope_theta": 1000.0,
            "factor": 4.0,
            **({} if dynamic else {"original_max_position_embeddings": 64}),
            **parameters,
        },
    )
    compute = importlib.import_module("transformers.modeling_rope_utils").ROPE_INIT_FUNCTIONS[
        parameters["rope_type"]
    ]
    theirs, amplitude = compute(config, "cpu", seq_len=length)
    ours = scaling.rates(16, 1000.0, ops.arange(length))
    np.testing.assert_allclose(np.ravel(ops.convert_to_numpy(ours)), array(theirs), rtol=1e-5)
    assert scaling.amplitude == pytest.approx(amplitude)


def test_llama_turns_halves():
    x = RANDOM.normal(size=(2, N, T, H)).astype("float32")
    config = transformers.LlamaConfig(hidden_size=N * H, num_attention_heads=N)
    where = torch.tensor([[5, 6, 7, 8, 9, 10, 11, 12, 400]])
    cosine, sine = modeling("llama").LlamaRotaryEmbedding(config)(torch.tensor(x), where)
    theirs, _ = modeling("llama").apply_rotary_pos_emb(
        torch.tensor(x), torch.tensor(x), cosine, sine
    )
    ours = positions.Rotary().rotate(x.transpose(0, 2, 1, 3), array(where[0]))
    np.testing.assert_allclose(np.asarray(ours).transpose(0, 2, 1, 3), array(theirs), atol=3e-5)


def test_gpt_j_turns_neighbours():
    x = RANDOM.normal(size=(2, T, N, H)).astype("float32")
    sine, cosine = modeling("gptj").create_sinusoidal_positions(T, H).chunk(2, dim=1)
    theirs = modeling("gptj").apply_rotary_pos_emb(torch.tensor(x), sine[None], cosine[None])
    ours = positions.Rotary("interleaved").rotate(x)
    np.testing.assert_allclose(ours, array(theirs), atol=1e-5)


def test_dino_v3_turns_by_rows_and_columns():
    """Compare with coordinates from -1 to 1 through the middles of patches."""
    side = 4
    config = transformers.DINOv3ViTConfig(
        hidden_size=N * H,
        num_attention_heads=N,
        image_size=side * 2,
        patch_size=2,
        rope_theta=100.0,
    )
    turn = modeling("dinov3_vit").DINOv3ViTRopePositionEmbedding(config).eval()
    cosine, sine = turn(torch.zeros(1, 3, 2 * side, 2 * side))
    q, k = RANDOM.normal(size=(2, 1, N, 1 + side**2, H)).astype("float32")
    theirs = modeling("dinov3_vit").apply_rotary_pos_emb(
        torch.tensor(q), torch.tensor(k), cosine, sine
    )
    theirs = np.einsum("bnth,bnsh->bnts", *map(array, theirs))
    rotary = positions.Rotary(
        max_wavelength=100,
        grid=(side, side),
        prefix=1,
        scaling=scalings.Linear(side / (4 * math.pi)),
    )
    ours = [np.asarray(rotary.rotate(x.transpose(0, 2, 1, 3))) for x in (q, k)]
    ours = np.einsum("btnh,bsnh->bnts", *ours)
    # the class token meets patches that it sees at 0 there and in the middle here
    np.testing.assert_allclose(ours[:, :, 1:, 1:], theirs[:, :, 1:, 1:], atol=1e-4)
    np.testing.assert_allclose(ours[:, :, 0, 0], theirs[:, :, 0, 0], atol=1e-4)


@pytest.mark.parametrize("heads", [3, 6, 8, 12])
def test_bloom_has_the_same_slopes(heads):
    theirs = modeling("bloom")._get_alibi_slopes(heads, torch.device("cpu"))
    np.testing.assert_allclose(alibi.compute_slopes(heads), array(theirs).ravel(), rtol=1e-6)


@pytest.mark.parametrize("bidirectional", [True, False])
@pytest.mark.parametrize("sizes", [(32, 128), (16, 64), (32, 256)])
def test_t5_has_the_same_buckets(bidirectional, sizes):
    steps = np.arange(-400, 401)
    theirs = modeling("t5").T5Attention._relative_position_bucket(
        torch.tensor(steps), bidirectional, *sizes
    )
    ours = positions.RelativeBias(*sizes, bidirectional).buckets(steps)
    np.testing.assert_array_equal(ours, array(theirs))


@pytest.mark.parametrize("buckets", [-1, 8])
@pytest.mark.parametrize("shared", [True, False])
def test_deberta(buckets, shared):
    """Compare the whole attention of both versions, whose projections are shared or not."""
    config = transformers.DebertaV2Config(
        hidden_size=12,
        num_attention_heads=N,
        relative_attention=True,
        position_buckets=buckets,
        max_relative_positions=16,
        pos_att_type=["c2p", "p2c"],
        share_att_key=shared,
    )
    theirs = modeling("deberta_v2").DisentangledSelfAttention(config).eval()
    rows = 2 * (16 if buckets < 0 else buckets)
    embedding = torch.tensor(RANDOM.normal(size=(rows, 12)).astype("float32"))
    x = RANDOM.normal(size=(2, 30, 12)).astype("float32")
    everything = torch.ones(2, 1, 30, 30)
    expected, scores = theirs(
        torch.tensor(x), everything, output_attentions=True, rel_embeddings=embedding
    )
    position = positions.Disentangled(16, num_buckets=None if buckets < 0 else buckets)
    ours = attention.MultiHeadAttention(
        N, 4, position=position, normalizer=normalizers.Softmax(temperature=3**0.5)
    )
    ours.build(x.shape, x.shape)
    for name in ("query", "key", "value"):
        projection = getattr(theirs, f"{name}_proj")
        kernel, bias = array(projection.weight).T, array(projection.bias)
        getattr(ours, f"{name}_dense").set_weights([kernel.reshape(12, N, 4), bias.reshape(N, 4)])
    ours.output_dense.set_weights([np.eye(12).reshape(N, 4, 12), np.zeros(12)])
    of_key = theirs.key_proj if shared else theirs.pos_key_proj
    of_query = theirs.query_proj if shared else theirs.pos_query_proj
    position.key_table.assign(array(of_key(embedding)).reshape(rows, N, 4))
    position.query_table.assign(array(of_query(embedding)).reshape(rows, N, 4))
    output, weights = ours(x, x, return_attention_scores=True)
    np.testing.assert_allclose(ops.convert_to_numpy(weights), array(scores), atol=1e-5)
    np.testing.assert_allclose(ops.convert_to_numpy(output), array(expected), atol=1e-5)


def test_swin():
    """Compare a window that is not square, so that rows and columns differ."""
    grid = (3, 4)
    theirs = _swin_bias(grid)
    position = positions.SwinBias(grid)
    position.build((None, None, N, 4))
    table = RANDOM.normal(size=(5 * 7, N)).astype("float32")
    position.table.assign(table)
    expected = table[theirs].reshape(12, 12, N).transpose(2, 0, 1)
    ours = position.bias(None, None, np.zeros((1, 12, N, 4)))[0]
    np.testing.assert_array_equal(ops.convert_to_numpy(ours), expected)


def _swin_bias(grid):
    """Return the rows of Swin's table for each pair of a window's patches."""
    for cls in vars(modeling("swin")).values():
        if hasattr(cls, "_create_relative_position_index"):
            layer = cls.__new__(cls)
            torch.nn.Module.__init__(layer)
            layer.window_size = grid
            return array(cls._create_relative_position_index(layer)).ravel()
    raise AssertionError("Swin's table has moved")


@pytest.mark.parametrize("pretrained", [(0, 0), (6, 5)])
def test_swin_v2(pretrained):
    grid = (3, 4)
    config = transformers.Swinv2Config()
    layer = modeling("swinv2").Swinv2SelfAttention(config, 12, N, grid, pretrained)
    table = layer.continuous_position_bias_mlp(layer.relative_coords_table).view(-1, N)
    expected = table[layer.relative_position_index.view(-1)].view(12, 12, N).permute(2, 0, 1)
    position = positions.ContinuousBias(grid, pretrained_grid=pretrained if pretrained[0] else None)
    position.build((None, None, N, 4))
    hidden, _, last = layer.continuous_position_bias_mlp
    position.set_weights([array(w).T for w in (hidden.weight, hidden.bias, last.weight)])
    ours = position.bias(None, None, np.zeros((1, 12, N, 4)))[0]
    expected = array(16 * torch.sigmoid(expected))
    np.testing.assert_allclose(ops.convert_to_numpy(ours), expected, rtol=1e-5)
