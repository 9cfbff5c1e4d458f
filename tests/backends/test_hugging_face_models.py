"""The builders beside Hugging Face's models, with their weights copied.

Ids are at least 1, as 0 is padding here and not everywhere there.
"""

import numpy as np
import pytest
import torch
import transformers
from keras import ops

import keras_attention as ka
from keras_attention.models.head import make_transform
from tests.stacks import make_writer

random = np.random.default_rng(0)
V, D, N, FF, LAYERS, LENGTH = 31, 12, 3, 20, 2, 16
SMALL = dict(num_layers=LAYERS, num_heads=N, hidden_dim=D, intermediate_dim=FF)
IDS = random.integers(1, V, (2, 7))
TARGET = random.integers(1, V, (2, 5))


def drawn(model):
    """Return their model with weights large enough to show each mistake, in inference mode."""
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(torch.tensor(random.normal(size=weight.shape, scale=0.3)))
    return model.eval()


def array(x):
    return x.detach().numpy()


def kernel(linear):
    return array(linear.weight).T


def put(layer, *values):
    layer.set_weights([np.reshape(v, w.shape) for v, w in zip(values, layer.weights, strict=True)])


def put_linear(layer, linear):
    put(layer, kernel(linear), *([] if linear.bias is None else [array(linear.bias)]))


def put_norm(layer, norm):
    put(layer, *(array(w) for w in norm.parameters()))


def put_attention(attention, *linears):
    """Query, key, value and output projections."""
    for name, linear in zip(("query", "key", "value", "output"), linears, strict=True):
        put_linear(getattr(attention, f"{name}_dense"), linear)


def put_feed_forward(layer, *linears):
    values = [x for one in linears for x in (kernel(one), one.bias) if x is not None]
    put(layer, *(x if isinstance(x, np.ndarray) else array(x) for x in values))


def norms(block):
    return {layer.name: layer for layer in block._flatten_layers() if "norm" in layer.name}


def close(ours, theirs):
    np.testing.assert_allclose(ops.convert_to_numpy(ours), array(theirs), atol=2e-5, rtol=1e-4)


def test_gpt_2():
    config = transformers.GPT2Config(
        vocab_size=V, n_embd=D, n_head=N, n_layer=LAYERS, n_inner=FF, n_positions=LENGTH
    )
    theirs = drawn(transformers.GPT2LMHeadModel(config))
    settings = dict(activation="gelu_tanh", epsilon=1e-5)
    ours = make_writer(V, **SMALL, position=ka.positions.Learned(LENGTH), **settings)
    embedding = ours.get_layer("embedding")
    put(embedding.table, array(theirs.transformer.wte.weight))
    put(embedding.position, array(theirs.transformer.wpe.weight))
    for i, layer in enumerate(theirs.transformer.h):
        block = ours.get_layer(f"block_{i}")
        put_norm(norms(block)["attention_norm"], layer.ln_1)
        put_norm(norms(block)["feed_forward_norm"], layer.ln_2)
        kernels = np.split(array(layer.attn.c_attn.weight), 3, axis=1)  # not transposed there
        biases = np.split(array(layer.attn.c_attn.bias), 3)
        for name, *values in zip(("query", "key", "value"), kernels, biases, strict=True):
            put(getattr(block.attention, f"{name}_dense"), *values)
        put(block.attention.output_dense, *map(array, layer.attn.c_proj.parameters()))
        inner, outer = layer.mlp.c_fc, layer.mlp.c_proj
        put(block.feed_forward, *(array(w) for one in (inner, outer) for w in one.parameters()))
    put_norm(ours.get_layer("final_norm"), theirs.transformer.ln_f)
    close(ours(IDS), theirs(torch.tensor(IDS)).logits)


def test_bert():
    config = transformers.BertConfig(
        vocab_size=V,
        hidden_size=D,
        num_attention_heads=N,
        num_hidden_layers=LAYERS,
        intermediate_size=FF,
        max_position_embeddings=LENGTH,
    )
    theirs = drawn(transformers.BertForMaskedLM(config))
    published = ka.models.sizes("masked_language_model")["BERT-Base"]
    ours = ka.models.masked_language_model(
        V,
        hidden_dim=D,
        position=ka.positions.Learned(LENGTH),
        embedding=published["embedding"],
        encoder=ka.models.TransformerEncoder.of_size(**SMALL, norm="post", epsilon=1e-12),
        head=make_transform(D, epsilon=1e-12),
    )
    embedding, their_embedding = ours.get_layer("embedding"), theirs.bert.embeddings
    put(embedding.table, array(their_embedding.word_embeddings.weight))
    put(embedding.position, array(their_embedding.position_embeddings.weight))
    put(ours.get_layer("segments"), array(their_embedding.token_type_embeddings.weight))
    put_norm(ours.get_layer("embedding_norm"), their_embedding.LayerNorm)
    for i, layer in enumerate(theirs.bert.encoder.layer):
        block, attention = ours.get_layer(f"block_{i}"), layer.attention
        inside = attention.self
        put_attention(
            block.attention, inside.query, inside.key, inside.value, attention.output.dense
        )
        put_norm(norms(block)["attention_norm"], attention.output.LayerNorm)
        put_feed_forward(block.feed_forward, layer.intermediate.dense, layer.output.dense)
        put_norm(norms(block)["feed_forward_norm"], layer.output.LayerNorm)
    head = theirs.cls.predictions
    put_linear(ours.get_layer("transform"), head.transform.dense)
    put_norm(ours.get_layer("transform_norm"), head.transform.LayerNorm)
    embedding.bias.assign(array(head.bias))
    ids, segments = IDS.copy(), random.integers(0, 2, IDS.shape)
    ids[0, 5:] = 0
    expected = theirs(
        torch.tensor(ids),
        token_type_ids=torch.tensor(segments),
        attention_mask=torch.tensor(ids != 0),
    ).logits
    actual = ops.convert_to_numpy(ours({"token_ids": ids, "segment_ids": segments}))
    close(actual[ids != 0], expected[torch.tensor(ids != 0)])


def sides(model):
    return model.get_layer("encoder"), model.get_layer("decoder")


@pytest.mark.parametrize("structure", ["t5", "t5_1.1"])
def test_t5(structure):
    gated = structure == "t5_1.1"
    config = transformers.T5Config(
        vocab_size=V,
        d_model=D,
        d_kv=5,
        num_heads=N,
        num_layers=LAYERS,
        d_ff=FF,
        feed_forward_proj="gated-gelu" if gated else "relu",
        tie_word_embeddings=not gated,
    )
    theirs = drawn(transformers.T5ForConditionalGeneration(config))
    ours = ka.models.encoder_decoder(V, structure=structure, **SMALL, key_dim=5)
    put(sides(ours)[0].get_layer("embedding").table, array(theirs.shared.weight))
    for name, mine, stack in zip(
        ("encoder", "decoder"), sides(ours), (theirs.encoder, theirs.decoder), strict=True
    ):
        bias = stack.block[0].layer[0].SelfAttention.relative_attention_bias.weight
        put(mine.get_layer(f"{name}_block_0").attention.position, array(bias))
        for i, layers in enumerate(stack.block):
            _put_t5_block(mine.get_layer(f"{name}_block_{i}"), *layers.layer)
        put_norm(mine.get_layer("final_norm"), stack.final_layer_norm)
    if gated:
        put(sides(ours)[1].get_layer("logits"), kernel(theirs.lm_head))
    expected = theirs(torch.tensor(IDS), decoder_input_ids=torch.tensor(TARGET)).logits
    close(ours({"source_ids": IDS, "target_ids": TARGET}), expected)


def _put_t5_block(block, first, *more):
    put_norm(norms(block)["attention_norm"], first.layer_norm)
    looks = [(block.attention, first.SelfAttention)]
    if len(more) > 1:
        looks.append((block.cross_attention, more[0].EncDecAttention))
        put_norm(norms(block)["cross_attention_norm"], more[0].layer_norm)
    for attention, their_attention in looks:
        put_attention(
            attention, their_attention.q, their_attention.k, their_attention.v, their_attention.o
        )
    put_norm(norms(block)["feed_forward_norm"], more[-1].layer_norm)
    inner = more[-1].DenseReluDense
    gates = [inner.wi_0, inner.wi_1] if hasattr(inner, "wi_0") else [inner.wi]
    put_feed_forward(block.feed_forward, *gates, inner.wo)


def test_bart():
    config = transformers.BartConfig(
        vocab_size=V,
        d_model=D,
        encoder_layers=LAYERS,
        decoder_layers=LAYERS,
        encoder_attention_heads=N,
        decoder_attention_heads=N,
        encoder_ffn_dim=FF,
        decoder_ffn_dim=FF,
        max_position_embeddings=LENGTH,
        pad_token_id=0,
    )
    theirs = drawn(transformers.BartForConditionalGeneration(config))
    ours = ka.models.encoder_decoder(V, structure="bart", **SMALL)
    put(sides(ours)[0].get_layer("embedding").table, array(theirs.model.shared.weight))
    stacks = theirs.model.encoder, theirs.model.decoder
    for name, mine, stack in zip(("encoder", "decoder"), sides(ours), stacks, strict=True):
        table = array(stack.embed_positions.weight)[2:]  # two rows are never used
        positions = mine.get_layer("embedding").position
        rows = positions.weights[0].shape[0] - LENGTH  # which no text here reaches
        put(positions, np.pad(table, [(0, rows), (0, 0)]))
        put_norm(mine.get_layer("embedding_norm"), stack.layernorm_embedding)
        for i, layer in enumerate(stack.layers):
            _put_bart_block(mine.get_layer(f"{name}_block_{i}"), layer)
    ids = IDS.copy()
    ids[0, 5:] = 0
    expected = theirs(
        torch.tensor(ids),
        attention_mask=torch.tensor(ids != 0).long(),
        decoder_input_ids=torch.tensor(TARGET),
    ).logits
    close(ours({"source_ids": ids, "target_ids": TARGET}), expected - theirs.final_logits_bias)


def _put_bart_block(block, layer):
    looks = [(block.attention, layer.self_attn)]
    if hasattr(layer, "encoder_attn"):
        looks.append((block.cross_attention, layer.encoder_attn))
        put_norm(norms(block)["cross_attention_norm"], layer.encoder_attn_layer_norm)
    for attention, their_attention in looks:
        put_attention(
            attention,
            their_attention.q_proj,
            their_attention.k_proj,
            their_attention.v_proj,
            their_attention.out_proj,
        )
    put_norm(norms(block)["attention_norm"], layer.self_attn_layer_norm)
    put_feed_forward(block.feed_forward, layer.fc1, layer.fc2)
    put_norm(norms(block)["feed_forward_norm"], layer.final_layer_norm)
