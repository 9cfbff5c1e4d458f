"""Models in Keras's older format, one `.h5` file, with padding masks."""

import keras
import pytest

import keras_attention as ka
from keras_attention.core import keras_internals
from tests import contract
from tests.grids import quick
from tests.models.test_builders import BUILT
from tests.test_data_format import draw_inputs

pytestmark = pytest.mark.filterwarnings("ignore:.*HDF5", "ignore:.*legacy")
# Keras counts a table that layers share once when it saves, and twice when it loads.
SHARED = "encoder_decoder_t5"
SIZE = dict(hidden_dim=8, num_layers=1)
BUILDERS = {
    **{name: BUILT[name] for name in ("text_classifier", "constituency_parser")},
    "seq2seq_transformer": BUILT["seq2seq_transformer"],
    "seq2seq_recurrent": lambda: ka.models.seq2seq_recurrent(20, 20, **SIZE),
}


@pytest.mark.parametrize("name", quick(BUILDERS, "text_classifier"))
def test_models_are_saved_and_loaded(name, tmp_path):
    model = BUILDERS[name]()
    model.save(tmp_path / "model.h5")
    loaded = keras.saving.load_model(tmp_path / "model.h5")
    inputs = draw_inputs(model)
    contract.close(loaded(inputs), model(inputs), atol=1e-6)


@pytest.mark.slow
def test_loading_refuses_a_table_shared_by_layers(tmp_path):
    BUILT[SHARED]().save(tmp_path / "model.h5")
    with pytest.raises(ValueError, match="Weight count mismatch"):
        keras.saving.load_model(tmp_path / "model.h5")


def test_names_of_operations_are_those_of_keras():
    ids = keras.Input((3,), dtype="int32")
    compared = keras.ops.not_equal(ids, 0)
    padded = keras.ops.pad(ids, ((0, 0), (1, 1)))
    registry = keras.saving.get_custom_objects()
    negated = keras.ops.logical_not(compared)
    tensors = {"NotEqual": compared, "Pad": padded, "LogicalNot": negated}
    for name, tensor in tensors.items():
        assert registry[name] is type(keras_internals.producer(tensor))
