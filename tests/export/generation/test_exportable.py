import keras
import numpy as np
import pytest
from keras import ops

import keras_attention as ka
from keras_attention.export import ExportError
from keras_attention.export.generation import endpoints, exportable
from tests.export.conftest import WRITER
from tests.export.generation.test_settings import make


class Sums(keras.layers.Layer):
    """Each token with all before it, which it does not keep: it cannot decode."""

    supports_masking = True

    def call(self, x):
        return ops.cumsum(x, axis=1)


def test_a_layer_that_looks_back_without_a_cache_is_noticed():
    ids = keras.Input((None,), dtype="int32", name="token_ids")
    x = ka.blocks.TokenEmbedding(23, 8)(ids)
    x = ka.attention.MultiHeadAttention(2, 4, mask="causal")(x, x)
    model = keras.Model(ids, keras.layers.Dense(23)(Sums()(x)), name="summing")
    decoder = ka.generation.Decoder(model)
    with pytest.raises(ExportError, match="summing gives other logits token by token"):
        exportable.check_cache(make(decoder, [], max_length=8))


def test_description_lists_kind_samplers_and_cache_entries(decoders):
    generation = make(decoders["writer"], ka.generation.Beam(2), **WRITER)
    points = endpoints.make_endpoints(generation)
    text = generation.describe(points)
    assert text["kind"] == "language_model" and text["end_token_ids"] == [3]
    assert text["samplers"]["beam"]["name"] == "Beam" and text["samplers"]["beam"]["width"] == 2
    assert {"name", "shape", "dtype", "changes", "from_encode"} == set(text["cache"][0])
    assert [entry["name"] for entry in text["cache"]] == list(points[0].cache)


@pytest.mark.slow
def test_examples_are_texts_of_the_whole_model(translator, translated):
    """Examples of an encoder-decoder may contain more, such as training targets."""
    parity = [p for p in translated[1].parity if p.signature == "encode"]
    assert len(parity) == 12  # three batches that were made up and the examples, in three runtimes
    examples = [{"target_ids": np.ones((2, 3))}]
    with pytest.raises(ValueError, match="examples= has a batch with target_ids, but the model"):
        exportable.make_exportable(translator, [], examples=examples)
