"""T5 (Raffel et al., 2020) and T5 1.1 (Shazeer, 2020): all layers share one relative bias."""

from keras_attention import positions
from keras_attention.pretrained.checkpoint import CheckpointError
from keras_attention.pretrained.table_entries import attention, dense, feed_forward, rms_norm

MODEL_TYPES = ("t5",)
IRRELEVANT = ("n_positions", "classifier_dropout", "is_gated_act", "dense_act_fn")
HEADS = {
    "ForConditionalGeneration": "encoder_decoder",
    "WithLMHeadModel": "encoder_decoder",  # the older name
    "T5Model": "encoder_decoder",
}
IGNORED = (r"(en|de)coder\.embed_tokens\.weight", r".*layer\.1\.EncDecAttention\.relative_.*")
ACTIVATIONS = {"relu": "relu", "gated-gelu": "geglu_tanh", "gated-silu": "swiglu"}


def settings(config):
    activation = config.one_of("feed_forward_proj", ACTIVATIONS, "relu")
    buckets = config.whole("relative_attention_num_buckets", 32)
    farthest = config.whole("relative_attention_max_distance", 128)
    if config.token_id("decoder_start_token_id", 0) != config.token_id("pad_token_id", 0):
        raise CheckpointError(
            f"{config.path}: decoder_start_token_id must equal pad_token_id for T5."
        )
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
        # These settings only scale the logits. Whether the logits have a separate kernel follows
        # from the tensors.
        "scale_logits": config.flag(
            "scale_decoder_outputs", config.flag("tie_word_embeddings", True)
        ),
    }


def head(config, builder, keywords, tensors):
    return {"tie_embeddings": "lm_head.weight" not in tensors}


def table(config, builder, keywords, tensors):
    entries = dense("decoder/logits", "lm_head") | {"embedding/table/embeddings": "shared.weight"}
    names = ("wi", "wo") if keywords["activation"] == "relu" else ("wi_0", "wi_1", "wo")
    sides = {"encoder": keywords["num_layers"], "decoder": keywords["num_decoder_layers"]}
    for side, count in sides.items():
        bias = f"{side}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
        entries[f"{side}_block_0/attention/relative_bias/table"] = bias
        parts = {"attention": "SelfAttention"}
        if side == "decoder":
            parts["cross_attention"] = "EncDecAttention"
        for i in range(count):
            ours, theirs = f"{side}_block_{i}", f"{side}.block.{i}.layer"
            for k, (our, their) in enumerate(parts.items()):
                entries |= attention(f"{ours}/{our}", f"{theirs}.{k}.{their}", "qkvo")
                entries |= rms_norm(f"{ours}/{our}_norm", f"{theirs}.{k}.layer_norm")
            last = f"{theirs}.{len(parts)}"
            entries |= feed_forward(f"{ours}/feed_forward", f"{last}.DenseReluDense", names)
            entries |= rms_norm(f"{ours}/feed_forward_norm", f"{last}.layer_norm")
        entries |= rms_norm(f"{side}/final_norm", f"{side}.final_layer_norm")
    return entries
