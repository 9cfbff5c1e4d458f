"""BART (Lewis et al., 2020) and Marian (Junczys-Dowmunt et al., 2018), with sinusoids."""

from keras_attention import positions
from keras_attention.pretrained.checkpoint import CheckpointError
from keras_attention.pretrained.config import ACTIVATIONS
from keras_attention.pretrained.weights import fairseq_block, find_base, layer_norm, rows_from

MODEL_TYPES = ("bart", "marian")
IRRELEVANT = (
    *("activation_dropout", "classifier_dropout", "classif_dropout", "encoder_layerdrop"),
    *("decoder_layerdrop", "num_hidden_layers", "add_bias_logits", "init_std"),
    "force_bos_token_to_be_generated",
)
HEADS = {
    "ForConditionalGeneration": "encoder_decoder",
    "MTModel": "encoder_decoder",
    "BartModel": "encoder_decoder",  # logits are inner products with its table of tokens
}
BASE = "model."  # what names begin with below a head
IGNORED = (
    r"(model\.)?(en|de)coder\.embed_tokens\.weight",
    r"lm_head\.weight",
    r"(model\.)?(en|de)coder\.version",
    r"(model\.)?(en|de)coder\.embed_positions\.weights?",
)


def settings(config):
    kind = config.values["model_type"]
    config.refuse("normalize_before", "add_final_layer_norm")
    config.one_of("static_position_embeddings", {True: None, False: None}, kind == "marian")
    config.one_of("share_encoder_decoder_embeddings", {True: None}, True)
    config.one_of("tie_word_embeddings", {True: None}, True)
    heads = config.whole("encoder_attention_heads")
    inner = config.whole("encoder_ffn_dim")
    vocabulary = config.whole("vocab_size")
    same = {"decoder_attention_heads": heads, "decoder_ffn_dim": inner}
    if kind == "marian":
        same["decoder_vocab_size"] = vocabulary
    for name, value in same.items():
        if config.get(name, value) != value:
            raise CheckpointError(
                f"{config.path} says {name}={config.get(name)}: expected the encoder's {value}."
            )
    learned = kind == "bart"
    return {
        "vocabulary_size": vocabulary,
        "structure": "bart",
        "num_layers": config.layers("encoder_layers"),
        "num_decoder_layers": config.layers("decoder_layers"),
        "num_heads": heads,
        "hidden_dim": config.whole("d_model"),
        "intermediate_dim": inner,
        "activation": config.one_of("activation_function", ACTIVATIONS, "gelu"),
        "dropout": config.number("dropout", 0.1),
        "attention_dropout": config.number("attention_dropout", 0.0),
        "position": "learned" if learned else positions.Sinusoidal("concatenated"),
        "max_length": config.whole("max_position_embeddings", 1024),
        "scale_embeddings": config.flag("scale_embedding", False),
        "normalize_embeddings": learned and config.flag("normalize_embedding", True),
        "source_padding_id": config.token_id("pad_token_id", 1),
        "target_padding_id": None,
    }


def head(config, builder, keywords, tensors):
    return {"logit_bias": "final_logits_bias" in tensors}


def table(config, builder, keywords, tensors):
    model = find_base(BASE, tensors)
    found = {
        "embedding/table/embeddings": f"{model}shared.weight",
        "decoder/embedding/bias": "final_logits_bias",
    }
    sides = {"encoder": keywords["num_layers"], "decoder": keywords["num_decoder_layers"]}
    for side, count in sides.items():
        base = f"{model}{side}"
        if keywords["position"] == "learned":
            places = rows_from(f"{base}.embed_positions.weight", 2)
            found[f"{side}/embedding/learned/table"] = places
        found |= layer_norm(f"{side}/embedding_norm", f"{base}.layernorm_embedding")
        for i in range(count):
            ours, theirs = f"{side}_block_{i}", f"{base}.layers.{i}"
            found |= fairseq_block(ours, theirs, side == "decoder")
    return found
