"""`join`: an encoder-decoder of its two sides."""

import keras

from keras_attention.models.head import name_logits


def join(encoder, decoder):
    """Run a decoder on what an encoder returns.

    Args:
        encoder: functional model with one output.
        decoder: functional model of a dict of inputs, `"encoded"` among them.

    Returns:
        The inputs of both sides, a dict by their names; what the encoder returns; and the logits.
        All are symbolic.
    """
    decoder.supports_masking = True  # or it warns that the mask of what is encoded is lost
    inputs = {
        x.name: keras.Input(x.shape[1:], dtype=x.dtype, name=x.name)
        for x in (*encoder.inputs, *decoder.inputs)
        if x.name != "encoded"
    }
    encoded = encoder(keras.tree.map_structure(lambda x: inputs[x.name], encoder.input))
    known = {**inputs, "encoded": encoded}
    logits = name_logits(decoder({name: known[name] for name in decoder.input}))
    return inputs, encoded, logits
