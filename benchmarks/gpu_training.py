"""Training steps of language models of each stack for `gpu.py`."""

import gc
import time

import numpy as np

TOLERANCE = 2e-2  # of the loss in bfloat16, relative to that in float32
BASES = ("Hugging Face",)
HEADING = f"{'tokens/s':>10} {'MFU':>5}"

GPT_2_MEDIUM = {
    "name": "GPT-2-medium",
    "family": "gpt2",
    "vocabulary": 50257,
    "layers": 24,
    "heads": 16,
    "groups": 16,
    "width": 1024,
    "inner": 4096,
    "length": 1024,
    "batch": 16,
}
LLAMA_1B = {  # the shape of Llama 3.2 1B
    "name": "Llama of 1B",
    "family": "llama",
    "vocabulary": 128256,
    "layers": 16,
    "heads": 32,
    "groups": 8,
    "width": 2048,
    "inner": 8192,
    "length": 2048,
    "batch": 2,
}
TINY = {
    "vocabulary": 64,
    "layers": 1,
    "heads": 4,
    "width": 32,
    "inner": 64,
    "length": 32,
    "batch": 2,
}


def cases(dry_run):
    """Pairs (title, case): a step with AdamW of each model, in bfloat16 over float32 weights."""
    for case in (GPT_2_MEDIUM, LLAMA_1B):
        if dry_run:
            case = {**case, **TINY, "groups": 4 if case["family"] == "gpt2" else 2}
        shape = "B{batch} T{length} L{layers} D{width}".format(**case)
        yield f"{case['name']}, {shape}, a training step", case


def multiplied_weights(case):
    """How many weights meet every token in a product: all but positions, norms and biases."""
    width, inner = case["width"], case["inner"]
    shared = 2 * width * width * case["groups"] // case["heads"]
    feed_forward = (2 if case["family"] == "gpt2" else 3) * width * inner
    return case["layers"] * (2 * width * width + shared + feed_forward) + (
        case["vocabulary"] * width
    )


def step_flops(case):
    """Of both passes: 6 for each weight and token, and the causal half of attention's products."""
    tokens = case["batch"] * case["length"]
    attention = 6 * case["layers"] * case["length"] * case["width"]
    return tokens * (6 * multiplied_weights(case) + attention)


def describe_speed(case, seconds, prepared):
    """Tokens a second, and the share of the rate that this stack's largest product reaches."""
    tokens = case["batch"] * case["length"] / seconds
    return f"{tokens:10.0f} {step_flops(case) / seconds / prepared['product_flops']:5.2f}"


def batch(case, length=None):
    """Ids (B, T + 1), from 1 on: no padding."""
    shape = (case["batch"], (length or case["length"]) + 1)
    return np.random.default_rng(0).integers(1, case["vocabulary"], shape).astype("int32")


def fastest(run, wait, times=5):
    """Seconds of the fastest of some runs."""
    found = []
    for _ in range(times):
        start = time.perf_counter()
        wait(run())
        found.append(time.perf_counter() - start)
    return min(found)


class Stack:
    """A stack that trains a language model."""

    def __init__(self, dry_run):
        self.dry_run = dry_run
        self.side = 64 if dry_run else 8192  # of the product that says what the device reaches

    def check(self, case):
        """How far the loss of two layers in bfloat16 is from that in float32, relatively."""
        small = {**case, "layers": min(2, case["layers"]), "batch": 2}
        ids = batch(small, min(256, case["length"]))
        exact, rounded = self.losses(small, ids)
        return abs(rounded - exact) / abs(exact)

    def forget(self):
        gc.collect()
        return {}


class OursOnJax(Stack):
    """`causal_language_model`, which promises that there is no padding, and `train_on_batch`.

    Its memory is the most that the process ever had, earlier cases included.
    """

    def device(self):
        import jax

        return str(jax.devices()[0].device_kind)

    def model(self, case, policy, **more):
        import keras

        import keras_attention as ka

        gpt_2 = case["family"] == "gpt2"
        before = keras.config.dtype_policy()
        keras.config.set_dtype_policy(policy)
        try:
            attention = ka.attention.MultiHeadAttention(
                case["heads"],
                case["width"] // case["heads"],
                num_key_value_heads=case["groups"],
                position=None if gpt_2 else "rotary",
                use_bias=gpt_2,
            )
            feed_forward = ka.blocks.FeedForward(
                case["inner"], "gelu_tanh" if gpt_2 else "swiglu", use_bias=gpt_2
            )
            return ka.models.causal_language_model(
                case["vocabulary"],
                hidden_dim=case["width"],
                dropout=0.0,
                position=ka.positions.Learned(case["length"]) if gpt_2 else None,
                embedding=ka.models.TextEmbedding(padding="none"),
                encoder=ka.models.TransformerEncoder(
                    case["layers"],
                    attention=attention,
                    feed_forward=feed_forward,
                    normalization="layer_norm" if gpt_2 else "rms_norm",
                    **more,
                ),
            )
        finally:
            keras.config.set_dtype_policy(before)

    def compiled(self, model):
        import keras

        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile(keras.optimizers.AdamW(1e-4), loss, jit_compile=True)
        return model

    def losses(self, case, ids):
        from keras_attention.core import keras_internals

        exact = self.model(case, "float32")
        for layer in keras_internals.all_layers(exact):
            if hasattr(layer, "implementation"):
                layer.implementation = "dense"
        rounded = self.model(case, "mixed_bfloat16")
        rounded.set_weights(exact.get_weights())
        return [
            float(self.compiled(m).test_on_batch(ids[:, :-1], ids[:, 1:])) for m in (exact, rounded)
        ]

    def prepare(self, case):
        import jax
        import jax.numpy as jnp

        x = jnp.ones((self.side, self.side), "bfloat16")
        product = jax.jit(jnp.matmul)
        jax.block_until_ready(product(x, x))
        seconds = fastest(lambda: product(x, x), jax.block_until_ready)
        model, ids = self.compiled(self.model(case, "mixed_bfloat16")), batch(case)

        def run():
            start = time.perf_counter()
            model.train_on_batch(ids[:, :-1], ids[:, 1:])  # waits for the loss
            found = {"seconds": time.perf_counter() - start}
            stats = jax.devices()[0].memory_stats()
            if stats:
                found["megabytes"] = stats["peak_bytes_in_use"] / 2**20
            return found

        run(), run()
        return run, {"product_flops": 2 * self.side**3 / seconds}


class HuggingFace(Stack):
    """A model of transformers with `attn_implementation="sdpa"`, autocast and `torch.compile`.

    A dry run does not compile, which would take a minute.
    """

    @property
    def place(self):
        import torch

        return "cuda" if torch.cuda.is_available() else "cpu"

    def device(self):
        import torch

        return torch.cuda.get_device_name() if self.place == "cuda" else "cpu"

    def model(self, case, attention):
        import torch
        import transformers

        torch.manual_seed(0)
        if case["family"] == "gpt2":
            config = transformers.GPT2Config(
                vocab_size=case["vocabulary"],
                n_positions=case["length"],
                n_embd=case["width"],
                n_layer=case["layers"],
                n_head=case["heads"],
                n_inner=case["inner"],
                bos_token_id=None,
                eos_token_id=None,
                resid_pdrop=0.0,
                embd_pdrop=0.0,
                attn_pdrop=0.0,
            )
        else:
            config = transformers.LlamaConfig(
                vocab_size=case["vocabulary"],
                max_position_embeddings=case["length"],
                hidden_size=case["width"],
                intermediate_size=case["inner"],
                num_hidden_layers=case["layers"],
                num_attention_heads=case["heads"],
                num_key_value_heads=case["groups"],
                tie_word_embeddings=True,
                bos_token_id=None,
                eos_token_id=None,
            )
        config.use_cache = False
        model = transformers.AutoModelForCausalLM.from_config(
            config, attn_implementation=attention, dtype=torch.float32
        )
        return model.to(self.place)

    def loss(self, model, ids, rounded=True):
        import torch

        with torch.autocast(self.place, torch.bfloat16, enabled=rounded):
            logits = model(ids[:, :-1]).logits
        return torch.nn.functional.cross_entropy(logits.float().flatten(0, 1), ids[:, 1:].flatten())

    def losses(self, case, ids):
        import torch

        ids = torch.from_numpy(ids).long().to(self.place)
        exact, rounded = (self.model(case, name) for name in ("eager", "sdpa"))
        rounded.load_state_dict(exact.state_dict())
        with torch.no_grad():
            return [self.loss(exact, ids, False).item(), self.loss(rounded, ids).item()]

    def prepare(self, case):
        import torch

        wait = torch.cuda.synchronize if self.place == "cuda" else lambda: None
        x = torch.ones((self.side, self.side), dtype=torch.bfloat16, device=self.place)
        x @ x
        seconds = fastest(lambda: x @ x, lambda _: wait())
        model = self.model(case, "sdpa").train()
        optimizer = torch.optim.AdamW(model.parameters(), 1e-4, fused=self.place == "cuda")
        called = model if self.dry_run else torch.compile(model)
        ids = torch.from_numpy(batch(case)).long().to(self.place)

        def run():
            found = {}
            if self.place == "cuda":
                torch.cuda.reset_peak_memory_stats()
            start = time.perf_counter()
            self.loss(called, ids).backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            wait()
            found["seconds"] = time.perf_counter() - start
            if self.place == "cuda":
                found["megabytes"] = torch.cuda.max_memory_allocated() / 2**20
            return found

        run(), run()
        return run, {"product_flops": 2 * self.side**3 / seconds}

    def forget(self):
        import torch

        gc.collect()
        if self.place == "cuda":
            torch.cuda.empty_cache()
        return {}


STACKS = {"ours on JAX": OursOnJax, "Hugging Face": HuggingFace}  # both have to fit a GPU at once
