import keras

from keras_attention.export import locate


class Outer(keras.layers.Layer):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.parts = [keras.layers.Dense(2, name="dense"), keras.layers.Dense(2, name="dense_1")]

    def call(self, x):
        return self.parts[1](self.parts[0](x))


def model():
    inputs = keras.Input((2,))
    return keras.Model(inputs, Outer(name="outer")(inputs), name="net")


def test_the_innermost_layer_is_named_with_its_path():
    found = locate.layer_of(model(), "net_1/outer_1/dense_1/MatMul;other@__inference_f_5")
    assert found == "layer 'outer/dense' (Dense)"


def test_a_number_may_belong_to_the_name():
    assert locate.layer_of(model(), "net/outer/dense_1_2/MatMul") == "layer 'outer/dense_1' (Dense)"


def test_ops_of_no_layer_belong_to_the_model():
    assert locate.layer_of(model(), "net_1/MatMul") == "model 'net' (no layer of its own)"


def test_other_names_tell_nothing():
    assert locate.layer_of(model(), "StatefulPartitionedCall:0") is None


def test_names_are_those_that_keras_gives_to_ops():
    import tensorflow as tf

    net = model()
    graph = tf.function(net).get_concrete_function(tf.TensorSpec((None, 2))).graph
    places = [locate.layer_of(net, op.name) for op in graph.get_operations() if op.type == "MatMul"]
    assert places == ["layer 'outer/dense' (Dense)", "layer 'outer/dense_1' (Dense)"]
