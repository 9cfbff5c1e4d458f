"""Training steps of language models on each stack, for `gpu.py`."""

import gc
import time

import numpy as np

IN_TURN = True
BASES = ("Hugging Face",)
HEADING = f"{'tokens/s':>10} {'MFU':>5}"

GPT_2 = {
    "name": "GPT-2",
    "family": "gpt2",
    "vocabulary": 50257,
    "layers": 12,
    "heads": 12,
    "groups": 12,
    "width": 768,
    "inner": 3072,
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
    """Yield pairs (title, case): an AdamW step of each model, in bfloat16 with float32 weights."""
    for case in (GPT_2, LLAMA_1B):
        if dry_run:
            case = {**case, **TINY, "groups": 4 if case["family"] == "gpt2" else 2}
        shape = "B{batch} T{length} L{layers} D{width}".format(**case)
        yield f"{case['name']}, {shape}, a training step", case


def multiplied_weights(case):
    """Count the weights that every token is multiplied by: all but positions, norms and biases."""
    width, inner = case["width"], case["inner"]
    shared = 2 * width * width * case["groups"] // case["heads"]
    feed_forward = (2 if case["family"] == "gpt2" else 3) * width * inner
    return case["layers"] * (2 * width * width + shared + feed_forward) + (
        case["vocabulary"] * width
    )


def step_flops(case):
    """Compute the FLOPs of a step: 6 per weight and token, and those of causal attention."""
    tokens = case["batch"] * case["length"]
    attention = 6 * case["layers"] * case["length"] * case["width"]
    return tokens * (6 * multiplied_weights(case) + attention)


def tolerance(case):
    """Return the tolerance of the loss in bfloat16, relative to float32."""
    return 2e-2


def describe_speed(case, seconds, answer):
    """Return tokens per second and the share of the measured peak rate (MFU) as text."""
    tokens = case["batch"] * case["length"] / seconds
    return f"{tokens:10.0f} {step_flops(case) / seconds / answer['product_flops']:5.2f}"


def batch(case, length=None):
    """Draw token ids (B, T + 1) without padding."""
    shape = (case["batch"], (length or case["length"]) + 1)
    return np.random.default_rng(0).integers(1, case["vocabulary"], shape).astype("int32")


def fastest(run, wait, times=5):
    """Return the seconds of the fastest of `times` runs."""
    results = []
    for _ in range(times):
        start = time.perf_counter()
        wait(run())
        results.append(time.perf_counter() - start)
    return min(results)


class Stack:
    """A stack that trains a language model."""

    on_torch = False

    def __init__(self, dry_run):
        self.dry_run = dry_run
        self.side = 64 if dry_run else 8192  # size of the product that measures the peak rate

    def check(self, case):
        """Return the relative difference between the losses in bfloat16 and float32.

        The model is reduced to two layers.
        """
        small = {**case, "layers": min(2, case["layers"]), "batch": 2}
        ids = batch(small, min(256, case["length"]))
        exact, rounded = self.losses(small, ids)
        return abs(rounded - exact) / abs(exact)

    def forget(self):
        gc.collect()
        return {}


class OursOnJax(Stack):
    """`causal_language_model` without padding, trained by `train_on_batch`.

    Memory is the peak of the process since its start, so it includes earlier cases.
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
        adam = keras.optimizers.AdamW(1e-4)
        model.compile(adam, loss, weighted_metrics=[], jit_compile=True)
        return model

    def losses(self, case, ids):
        from keras_attention.core import keras_internals

        exact = self.model(case, "float32")
        for layer in keras_internals.all_layers(exact):
            if hasattr(layer, "implementation"):
                layer.implementation = "dense"
        rounded = self.model(case, "mixed_bfloat16")
        rounded.set_weights(exact.get_weights())
        return [float(self.compiled(m).test_on_batch(*self.feed(ids))) for m in (exact, rounded)]

    def feed(self, ids):
        """Return the inputs and the labels of a batch of token ids (B, T + 1)."""
        return ids[:, :-1], ids[:, 1:]

    def prepare(self, case):
        import jax

        x = jax.random.normal(jax.random.key(0), (self.side, self.side), "bfloat16")
        product = jax.jit(jax.numpy.matmul)
        model, data = self.compiled(self.model(case, "mixed_bfloat16")), self.feed(batch(case))

        def run():
            start = time.perf_counter()
            model.train_on_batch(*data)  # this waits for the loss
            result = {"seconds": time.perf_counter() - start}
            rate = 2 * self.side**3 / fastest(lambda: product(x, x), jax.block_until_ready)
            stats = jax.devices()[0].memory_stats()
            if stats:
                result["megabytes"] = stats["peak_bytes_in_use"] / 2**20
            return {**result, "product_flops": rate}

        run(), run()
        return run, {}


class KerasHub(OursOnJax):
    """A model of KerasHub, trained by `train_on_batch`."""

    def model(self, case, policy):
        import keras_hub

        size = dict(
            vocabulary_size=case["vocabulary"],
            num_layers=case["layers"],
            hidden_dim=case["width"],
            intermediate_dim=case["inner"],
            dropout=0.0,
            dtype=policy,
        )
        models = keras_hub.models
        if case["family"] == "gpt2":
            backbone = models.GPT2Backbone(
                num_heads=case["heads"], max_sequence_length=case["length"], **size
            )
            return models.GPT2CausalLM(backbone=backbone, preprocessor=None)
        backbone = models.LlamaBackbone(
            num_query_heads=case["heads"],
            num_key_value_heads=case["groups"],
            tie_word_embeddings=True,
            **size,
        )
        return models.LlamaCausalLM(backbone=backbone, preprocessor=None)

    def feed(self, ids):
        inputs = {"token_ids": ids[:, :-1], "padding_mask": np.ones_like(ids[:, 1:], "bool")}
        return inputs, ids[:, 1:]


class HuggingFace(Stack):
    """A model of transformers with `attn_implementation="sdpa"`, autocast and `torch.compile`.

    A dry run skips `torch.compile`, which would take a minute.
    """

    on_torch = True

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
        x = torch.randn((self.side, self.side), dtype=torch.bfloat16, device=self.place)
        model = self.model(case, "sdpa").train()
        optimizer = torch.optim.AdamW(model.parameters(), 1e-4, fused=self.place == "cuda")
        called = model if self.dry_run else torch.compile(model)
        ids = torch.from_numpy(batch(case)).long().to(self.place)

        def run():
            result = {}
            if self.place == "cuda":
                torch.cuda.reset_peak_memory_stats()
            start = time.perf_counter()
            self.loss(called, ids).backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            wait()
            result["seconds"] = time.perf_counter() - start
            if self.place == "cuda":
                result["megabytes"] = torch.cuda.max_memory_allocated() / 2**20
            seconds = fastest(lambda: x @ x, lambda _: wait())
            return {**result, "product_flops": 2 * self.side**3 / seconds}

        run(), run()
        return run, {}

    def forget(self):
        import torch

        gc.collect()
        if self.place == "cuda":
            torch.cuda.empty_cache()
        return {}


STACKS = {"ours on JAX": OursOnJax, "KerasHub on JAX": KerasHub, "Hugging Face": HuggingFace}
