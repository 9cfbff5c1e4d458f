"""Write our language model of GPT-2's size as a file of llama.cpp, for comparison.

It needs the packages gguf and llama-cpp-python.
"""

import numpy as np

NAMES = {  # of the layers of a block in llama.cpp: path of the layer in our model
    "attn_norm": "attention_norm",
    "attn_output": "attention/attention_output",
    "ffn_norm": "feed_forward_norm",
    "ffn_up": "feed_forward/intermediate",
    "ffn_down": "feed_forward/output",
}


def write_gguf(model, path, kind, length):
    """Write a causal language model with learned positions.

    Args:
        model: from `ka.models.causal_language_model` with the parts of GPT-2.
        path: path of the new file.
        kind: `"F32"`, or the format of all matrices, such as `"Q8_0"` or `"Q4_0"`.
        length: int, the greatest number of tokens.
    """
    import gguf

    weights = {weight.path: np.array(weight) for weight in model.weights}
    vocabulary, width = weights["embedding/table/embeddings"].shape
    heads = weights["block_0/attention/query/bias"].shape[0]
    layers = sum(path.endswith("attention_norm/gamma") for path in weights)
    file = gguf.GGUFWriter(path, "gpt2")
    file.add_context_length(length)
    file.add_embedding_length(width)
    file.add_block_count(layers)
    file.add_feed_forward_length(weights["block_0/feed_forward/intermediate/bias"].size)
    file.add_head_count(heads)
    file.add_layer_norm_eps(1e-5)
    file.add_vocab_size(vocabulary)
    file.add_tokenizer_model("none")

    def add(name, array):
        format = gguf.GGMLQuantizationType[kind if array.ndim == 2 else "F32"]
        array = np.ascontiguousarray(array, "float32")
        file.add_tensor(name, gguf.quantize(array, format), raw_dtype=format)

    def add_norm(name, layer):
        add(f"{name}.weight", weights[f"{layer}/gamma"])
        add(f"{name}.bias", weights[f"{layer}/beta"])

    add("token_embd.weight", weights["embedding/table/embeddings"])
    positions = np.asarray(weights["embedding/learned/table"][:length], "float32")
    file.add_tensor("position_embd.weight", positions)  # llama.cpp reads them as floats
    add_norm("output_norm", "final_norm")
    for k in range(layers):
        parts = [f"block_{k}/attention/{name}" for name in ("query", "key", "value")]
        kernel = np.concatenate([weights[f"{p}/kernel"].reshape(width, -1) for p in parts], axis=1)
        add(f"blk.{k}.attn_qkv.weight", kernel.T)
        add(f"blk.{k}.attn_qkv.bias", np.concatenate([weights[f"{p}/bias"].ravel() for p in parts]))
        for theirs, ours in NAMES.items():
            layer = f"block_{k}/{ours}"
            if theirs.endswith("norm"):
                add_norm(f"blk.{k}.{theirs}", layer)
            else:
                kernel, bias = weights[f"{layer}/kernel"], weights[f"{layer}/bias"]
                add(f"blk.{k}.{theirs}.weight", kernel.reshape(-1, bias.size).T)
                add(f"blk.{k}.{theirs}.bias", bias)
    file.write_header_to_file()
    file.write_kv_data_to_file()
    file.write_tensors_to_file()
    file.close()


def open_gguf(path, length, threads):
    """Return a function from a prompt (1, T) and a number of ids to the ids, chosen greedily."""
    import ctypes

    import llama_cpp

    llama_cpp.llama_backend_init()
    silence = llama_cpp.llama_log_callback(lambda *_: None)
    llama_cpp.llama_log_set(silence, ctypes.c_void_p(0))
    model = llama_cpp.llama_model_load_from_file(
        str(path).encode(), llama_cpp.llama_model_default_params()
    )
    settings = llama_cpp.llama_context_default_params()
    settings.n_ctx = settings.n_batch = length
    settings.n_threads = settings.n_threads_batch = threads
    context = llama_cpp.llama_init_from_model(model, settings)
    size = llama_cpp.llama_vocab_n_tokens(llama_cpp.llama_model_get_vocab(model))

    def choose(ids):
        tokens = (llama_cpp.llama_token * len(ids))(*map(int, ids))
        batch = llama_cpp.llama_batch_get_one(tokens, len(ids))
        if llama_cpp.llama_decode(context, batch):
            raise RuntimeError("llama.cpp could not compute these tokens")
        logits = llama_cpp.llama_get_logits_ith(context, -1)
        return int(np.ctypeslib.as_array(logits, (size,)).argmax())

    def run(prompt, number):
        llama_cpp.llama_memory_clear(llama_cpp.llama_get_memory(context), True)
        ids = [choose(prompt[0])]
        while len(ids) < number:
            ids.append(choose(ids[-1:]))
        return np.array([ids])

    run.silence = silence  # llama.cpp calls it as long as it runs
    return run
