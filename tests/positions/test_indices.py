"""Explicit positions: the result for a part is the same part of the result for all tokens."""

import numpy as np
import pytest

from keras_attention import positions
from keras_attention.positions.indices import count, count_queries_and_keys, distances

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(2, 13, 6)).astype("float32")
Q = RANDOM.normal(size=(2, 13, 3, 4)).astype("float32")
PART = np.arange(5, 9)


def built(position, shape):
    if not getattr(position, "built", True):
        position.build(shape)
    return position


@pytest.mark.parametrize(
    "position",
    [
        positions.Sinusoidal(),
        positions.Sinusoidal("concatenated"),
        positions.Learned(13),
        positions.Scalar(length=13),
        positions.Scalar(False),
        positions.get(["sinusoidal", positions.Learned(13)]),
        positions.Sinusoidal2D((3, 4), 1),
        positions.Learned2D((3, 4), 1),
    ],
)
@pytest.mark.parametrize("rows", [PART, np.stack([PART, PART])])
def test_embeddings_of_a_part(position, rows):
    whole = built(position, X.shape).embed(X)
    part = position.embed(X[:, 5:9], rows)
    np.testing.assert_allclose(part, whole[:, 5:9], atol=1e-6)


@pytest.mark.parametrize(
    "position",
    [
        positions.Rotary(),
        positions.Rotary("interleaved"),
        positions.Rotary(scaling=positions.scalings.YaRN(4, 8)),
        positions.Rotary(grid=(3, 4), prefix=1),
        positions.XPos(scale_base=10),
        positions.get(["rotary", positions.XPos(scale_base=10)]),
    ],
)
@pytest.mark.parametrize("rows", [PART, np.stack([PART, PART])])
def test_rotations_of_a_part(position, rows):
    for turn in (position.rotate, position.rotate_key):
        np.testing.assert_allclose(turn(Q[:, 5:9], rows), turn(Q)[:, 5:9], atol=1e-6)


@pytest.mark.parametrize(
    "position",
    [
        positions.ALiBi(),
        positions.ALiBi(True),
        positions.RelativeBias(8, 20),
        positions.RelativeBias(8, 20, False),
        positions.LearnedALiBi(),
        positions.Shaw(2),
        positions.TransformerXL(),
        positions.Disentangled(3),
        positions.SwinBias((3, 4), 1),
        positions.ContinuousBias((3, 4), 1),
        positions.get(["alibi", "relative_bias"]),
        positions.get(["shaw", "transformer_xl"]),
    ],
)
@pytest.mark.parametrize("rows", [PART, np.stack([PART, PART])])
def test_biases_of_a_part(position, rows):
    """Give a few new queries and a longer memory of keys, as in decoding with a cache."""
    whole = built(position, Q.shape).bias(None, None, Q, Q)
    part = position.bias(rows, np.arange(13), Q[:, 5:9], Q)
    np.testing.assert_allclose(part[0], whole[0, :, 5:9], atol=1e-6)
    np.testing.assert_array_equal(position.bias(rows, None, Q[:, 5:9], Q), part)
    some = position.bias(rows, np.arange(2, 11), Q[:, 5:9], Q[:, 2:11])
    np.testing.assert_allclose(some, part[:, :, :, 2:11], atol=1e-6)


def test_positions_start_again_in_packed_documents():
    """Embed two documents in a row of 7, with positions 0-3 and 0-2."""
    where = [[0, 1, 2, 3, 0, 1, 2]]
    packed = positions.Sinusoidal().embed(X[:1, :7], where)
    np.testing.assert_allclose(packed[:, :4], positions.Sinusoidal().embed(X[:1, :4]), atol=1e-6)
    np.testing.assert_allclose(packed[:, 4:], positions.Sinusoidal().embed(X[:1, 4:7]), atol=1e-6)


def test_positions_count_from_zero():
    np.testing.assert_array_equal(count(None, X), np.arange(13))
    i, j = count_queries_and_keys(None, None, Q)
    assert i is j
    i, j = count_queries_and_keys([7], None, Q[:, :1], Q)
    np.testing.assert_array_equal(i, [7])
    np.testing.assert_array_equal(j, np.arange(13))
    np.testing.assert_array_equal(distances([7, 8], [[0, 1, 9]])[0, 0], [[-7, -6, 2], [-8, -7, 1]])


def test_positions_of_a_wrong_rank_are_an_error():
    for where in (3, np.zeros((2, 13, 1), "int32")):
        with pytest.raises(ValueError, match=r"Give \(length,\) or \(batch, length\)"):
            positions.Sinusoidal().embed(X, where)


@pytest.mark.parametrize("name", ["sinusoidal", "rotary", "learned"])
def test_a_wrong_number_of_positions_is_an_error(name):
    """Refuse one position for several tokens too."""
    position = positions.Learned(9) if name == "learned" else positions.get(name)
    shape = (2, 5, 8) if "embed" in position.roles else (2, 5, 2, 4)
    x = np.zeros(shape, "float32")
    if name == "learned":
        position.build(shape)
    method = position.embed if "embed" in position.roles else position.rotate
    assert method(x, np.arange(5)).shape == shape
    for wrong in (np.arange(1), np.arange(4), np.zeros((2, 1))):
        with pytest.raises(ValueError, match=r"for 5 tokens.*\(5,\) or \(batch, 5\)"):
            method(x, wrong)
