"""T5 (Raffel et al., 2020) and T5 1.1 (Shazeer, 2020): relative biases that all layers share."""

from keras_attention import positions
from keras_attention.pretrained.checkpoint import CheckpointError
from keras_attention.pretrained.weights import dense, rms_norm

MODEL_TYPES = ("t5",)
IRRELEVANT = ("n_positions", "classifier_dropout", "is_gated_act", "dense_act_fn")
HEADS = {
    "ForConditionalGeneration": "encoder_decoder",
    "WithLMHeadModel": "encoder_decoder",  # its older name
    "T5Model": "encoder_decoder",
}
IGNORED = (r"(en|de)coder\.embed_tokens\.weight", r".*layer\.1\.EncDecAttention\.relative_.*")
ACTIVATIONS = {"relu": "relu", "gated-gelu": "geglu_tanh", "gated-silu": "swiglu"}


def settings(config):
    activation = config.one_of("feed_forward_proj", ACTIVATIONS, "relu")
    buckets = config.whole("relative_attention_num_buckets", 32)
    farthest = config.whole("relative_attention_max_distance", 128)
    if config.token_id("decoder_start_token_id", 0) != config.token_id("pad_token_id", 0):
        raise CheckpointError(f"{config.path}: a decoder that begins with no padding is not known.")
    return {
        "vocabulary_size": config.whole("vocab_size"),
        "structure": "t5_1.1" if activation != "relu" else "t5",
        "num_layers": config.layers("num_layers"),
        "num_decoder_layers": config.layers("num_decoder_layers", config.layers("num_layers")),
        "num_heads": config.whole("num_heads"),
        "hidden_dim": config.whole("d_model"),
        "key_dim": config.whole("d_kv", 64),
        "intermediate_dim": config.whole("d_ff"),
        "activation": activation,
        "dropout": config.number("dropout_rate", 0.1),
        "epsilon": config.number("layer_norm_epsilon", 1e-6),
        "position": positions.RelativeBias(buckets, farthest),
        "decoder_position": positions.RelativeBias(buckets, farthest, bidirectional=False),
        "source_padding_id": config.token_id("pad_token_id", 0),
        "target_padding_id": None,
        # What the file has decides whether there is a matrix for logits, and these settings only
        # whether they are scaled: the older one meant both.
        "scale_logits": config.flag(
            "scale_decoder_outputs", config.flag("tie_word_embeddings", True)
        ),
    }


def head(config, builder, keywords, tensors):
    return {"tie_embeddings": "lm_head.weight" not in tensors}


def table(config, builder, keywords, tensors):
    found = {"embedding/table/embeddings": "shared.weight"}
    gated = keywords["activation"] != "relu"
    sides = {"encoder": keywords["num_layers"], "decoder": keywords["num_decoder_layers"]}
    for side, count in sides.items():
        bias = f"{side}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
        found[f"{side}_block_0/attention/relative_bias/table"] = bias
        for i in range(count):
            ours, theirs = f"{side}_block_{i}", f"{side}.block.{i}.layer"
            found |= _attention(f"{ours}/attention", f"{theirs}.0.SelfAttention")
            found |= rms_norm(f"{ours}/attention_norm", f"{theirs}.0.layer_norm")
            last = 1
            if side == "decoder":
                found |= _attention(f"{ours}/cross_attention", f"{theirs}.1.EncDecAttention")
                found |= rms_norm(f"{ours}/cross_attention_norm", f"{theirs}.1.layer_norm")
                last = 2
            inside = f"{theirs}.{last}.DenseReluDense"
            names = {"intermediate": "wi", "output": "wo"}
            if gated:
                names = {"gate": "wi_0", "intermediate": "wi_1", "output": "wo"}
            for our, their in names.items():
                found |= dense(f"{ours}/feed_forward/{our}", f"{inside}.{their}", bias=False)
            found |= rms_norm(f"{ours}/feed_forward_norm", f"{theirs}.{last}.layer_norm")
        found |= rms_norm(f"{side}/final_norm", f"{side}.final_layer_norm")
    return found | dense("decoder/logits", "lm_head", bias=False)


def _attention(ours, theirs):
    names = {"query": "q", "key": "k", "value": "v", "attention_output": "o"}
    return {f"{ours}/{our}/kernel": f"{theirs}.{their}.weight" for our, their in names.items()}
