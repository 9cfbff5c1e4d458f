"""The attention of each stack for `gpu.py`, and its definition in NumPy."""

import time

import numpy as np

TOLERANCE = 3e-2  # of bfloat16, relative to the largest number
BASES = ("jax.nn, cuDNN", "jax.nn, XLA")
HEADING = f"{'TFLOP/s':>8}"
TOKENS = 16384  # of a batch
LENGTHS = (1024, 2048, 4096, 8192, 16384, 32768)
WINDOW = 1024


def cases(dry_run):
    """Pairs (title, case): every pattern of every length and head size, forward and both passes."""
    for size in (8,) if dry_run else (64, 128):
        for length in (32,) if dry_run else LENGTHS:
            for pattern in ("causal", "window", "alibi", "padded"):
                for passes in ("forward", "both passes"):
                    case = {
                        "batch": 2 if dry_run else max(1, TOKENS // length),
                        "length": length,
                        "check_length": 32 if dry_run else 512,
                        "heads": 4 if dry_run else 2048 // size,
                        "groups": 1 if dry_run else 512 // size,
                        "size": size,
                        "pattern": pattern,
                        "window": 8 if dry_run else WINDOW,
                        "backward": passes != "forward",
                    }
                    shape = "B{batch} T{length} N{heads} K{groups} H{size}".format(**case)
                    yield f"{pattern}, {shape}, {passes}", case


def describe_speed(case, seconds, prepared):
    """TFLOP/s of the pairs that are seen, by the products of both passes."""
    length, window = case["length"], case["window"]
    seen = length * (length + 1) / 2
    if case["pattern"] == "window" and window < length:
        seen = window * (window + 1) / 2 + (length - window) * window
    pairs = case["batch"] * case["heads"] * seen
    if case["pattern"] == "padded":
        lengths = row_lengths(case["batch"], length).astype("float64")
        pairs = case["heads"] * float(np.sum(lengths * (lengths + 1) / 2))
    products = 2 + 5 * case["backward"]
    return f"{2 * products * pairs * case['size'] / seconds / 1e12:8.1f}"


def row_lengths(batch, length):
    """How many tokens each row has, where they are padded: three quarters on average."""
    return np.linspace(length / 2, length, batch).round().astype("int32")


def slopes(heads):
    """ALiBi's slopes, for a number of heads that is a power of two."""
    return 2.0 ** (-8.0 / heads * np.arange(1, heads + 1, dtype="float32"))


def arrays(case, length):
    """Query (B, T, N, H), key and value (B, T, K, H), and the gradient of the output, float32."""
    random = np.random.default_rng(0)
    batch, size = case["batch"], case["size"]
    heads = [case["heads"], case["groups"], case["groups"], case["heads"]]
    return [random.standard_normal((batch, length, n, size), dtype="float32") for n in heads]


def to_bfloat16(x):
    """`x` rounded as bfloat16 rounds it, so that the definition has the numbers of the stacks."""
    import ml_dtypes

    return x.astype(ml_dtypes.bfloat16).astype("float32")


def visible(case, index, lengths):
    """Which pairs are seen: bool (B or 1, 1, T, T).

    `index` is 0, 1, ..., T - 1, and `lengths` (B,) what `row_lengths` gives, of any library.
    """
    i, j = index[:, None], index[None]
    seen = (j <= i)[None, None]
    if case["pattern"] == "window":
        seen = seen & (i - j < case["window"])
    if case["pattern"] == "padded":
        seen = seen & (j < lengths[:, None, None, None])
    return seen


def alibi(case, index, slopes):
    """What is added to scores: float (1, N, T, T), -slope · |i - j|, of any library."""
    return (-slopes[:, None, None] * abs(index[:, None] - index[None]))[None]


def check_memory(case, length):
    """Refuses to make a bias of more than 16 GB: a peer that has no other ALiBi cannot run."""
    gigabytes = case["heads"] * length**2 * 2 / 2**30
    if gigabytes > 16:
        raise MemoryError(f"the bias alone would be of {gigabytes:.0f} GB")


def define(case, length):
    """Output and the three gradients by the equation, in float32, and which queries are tokens."""
    query, key, value, upstream = map(to_bfloat16, arrays(case, length))
    tokens = np.ones((case["batch"], length), "bool")
    if case["pattern"] == "padded":
        tokens = np.arange(length) < row_lengths(case["batch"], length)[:, None]
    upstream = upstream * tokens[:, :, None, None]
    groups, scale = case["heads"] // case["groups"], case["size"] ** -0.5
    keys, values = (np.repeat(x, groups, axis=2) for x in (key, value))
    scores = np.einsum("btnh,bsnh->bnts", query, keys) * scale
    if case["pattern"] == "alibi":
        scores = scores + alibi(case, np.arange(length), slopes(case["heads"]))
    seen = visible(case, np.arange(length), row_lengths(case["batch"], length))
    scores = np.where(seen, scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    output = np.einsum("bnts,bsnh->btnh", weights, values) * tokens[:, :, None, None]
    of_weights = np.einsum("btnh,bsnh->bnts", upstream, values)
    of_scores = weights * (of_weights - (of_weights * weights).sum(-1, keepdims=True)) * scale

    def of_group(x):
        return x.reshape(*x.shape[:2], case["groups"], groups, case["size"]).sum(axis=3)

    of_key = of_group(np.einsum("bnts,btnh->bsnh", of_scores, query))
    of_value = of_group(np.einsum("bnts,btnh->bsnh", weights, upstream))
    of_query = np.einsum("bnts,bsnh->btnh", of_scores, keys)
    return output, of_query, of_key, of_value


class Stack:
    """A stack whose attention is checked and timed.

    Subclasses say what `attention(case, length)` is, a function of query, key and value, and how
    it is compiled, run and measured.
    """

    def __init__(self, dry_run):
        self.dry_run = dry_run

    def check(self, case):
        """The largest difference from the definition, relative to the largest number of each."""
        length = case["check_length"]
        case = {**case, "window": min(case["window"], length // 4)}
        found = self.outputs(case, length)
        expected = define(case, length)[: len(found)]
        errors = [
            np.abs(ours - theirs).max() / np.abs(theirs).max()
            for ours, theirs in zip(found, expected, strict=True)
        ]
        return float(max(errors)) if np.all(np.isfinite(errors)) else float("inf")

    def outputs(self, case, length):
        """The output, and `backward` the three gradients, as float32 arrays."""
        raise NotImplementedError

    def prepare(self, case):
        """(function that gives {"seconds": ...} of one run, dict with what is known of it)."""
        raise NotImplementedError

    def device(self):
        raise NotImplementedError

    def forget(self):
        return {}

    def repetitions(self, run):
        """How many runs take a tenth of a second."""
        start = time.perf_counter()
        run()
        return 1 if self.dry_run else max(1, round(0.1 / (time.perf_counter() - start)))


class JaxStack(Stack):
    """What runs on JAX: compiled once, its memory as the compiler says."""

    def device(self):
        import jax

        return str(jax.devices()[0].device_kind)

    def function(self, case, length):
        import jax
        import jax.numpy as jnp

        attend = self.attention(case, length)
        if case["pattern"] == "padded":
            tokens = np.arange(length) < row_lengths(case["batch"], length)[:, None]
            of_tokens, plain = jnp.asarray(tokens[:, :, None, None]), attend

            def attend(query, key, value):
                return jnp.where(of_tokens, plain(query, key, value), 0)

        if not case["backward"]:
            return lambda query, key, value, upstream: (attend(query, key, value),)

        def both(query, key, value, upstream):
            output, backward = jax.vjp(attend, query, key, value)
            return output, *backward(upstream)

        return both

    def inputs(self, case, length):
        import jax.numpy as jnp

        return [jnp.asarray(x, "bfloat16") for x in arrays(case, length)]

    def outputs(self, case, length):
        import jax

        found = jax.jit(self.function(case, length))(*self.inputs(case, length))
        return [np.asarray(x, "float32") for x in found]

    def prepare(self, case):
        import jax

        inputs = self.inputs(case, case["length"])
        compiled = jax.jit(self.function(case, case["length"])).lower(*inputs).compile()
        run = lambda: jax.block_until_ready(compiled(*inputs))  # noqa: E731
        run()
        times = self.repetitions(run)

        def measure():
            start = time.perf_counter()
            for _ in range(times):
                found = compiled(*inputs)
            jax.block_until_ready(found)
            return {"seconds": (time.perf_counter() - start) / times}

        memory = compiled.memory_analysis()
        return measure, {"megabytes": memory.temp_size_in_bytes / 2**20} if memory else {}


class OursOnJax(JaxStack):
    """`ka.attention.attend`, by the kernel that its rule picks."""

    def attention(self, case, length):
        import jax.numpy as jnp

        import keras_attention as ka

        terms = our_terms(ka, case)
        if case["pattern"] == "padded":
            lengths = jnp.asarray(row_lengths(case["batch"], length))
            given = {"query_lengths": lengths, "key_lengths": lengths}
            terms["mask"] = ka.attention.Visibility(terms["mask"], **given)
        return lambda *heads: ka.attention.attend(*heads, return_weights=False, **terms)


def our_terms(ka, case):
    mask = ka.masks.Causal()
    mask = mask & ka.masks.Window(case["window"]) if case["pattern"] == "window" else mask
    return {"mask": mask, "position": "alibi" if case["pattern"] == "alibi" else None}


class JaxNN(JaxStack):
    """`jax.nn.dot_product_attention`, told as much as it takes."""

    implementation = "cudnn"

    def attention(self, case, length):
        import jax
        import jax.numpy as jnp

        given = {"is_causal": True}
        if case["pattern"] == "window":
            given["local_window_size"] = (case["window"] - 1, 0)
        if case["pattern"] == "alibi":
            check_memory(case, length)
            index, each = jnp.arange(length), jnp.asarray(slopes(case["heads"]), "bfloat16")
            given["bias"] = alibi(case, index, each)
        if case["pattern"] == "padded":
            lengths = jnp.asarray(row_lengths(case["batch"], length))
            given |= {"query_seq_lengths": lengths, "key_value_seq_lengths": lengths}
        return lambda *heads: jax.nn.dot_product_attention(
            *heads, implementation=self.implementation, **given
        )


class JaxNNByXLA(JaxNN):
    implementation = "xla"


class TorchStack(Stack):
    """What runs on PyTorch, eagerly: its memory as the allocator says."""

    @property
    def place(self):
        import torch

        return "cuda" if torch.cuda.is_available() else "cpu"

    def device(self):
        import torch

        return torch.cuda.get_device_name() if self.place == "cuda" else "cpu"

    def inputs(self, case, length):
        import torch

        found = [torch.from_numpy(x).to(self.place, torch.bfloat16) for x in arrays(case, length)]
        return [x.requires_grad_(case["backward"]) for x in found[:3]] + found[3:]

    def function(self, case, length):
        import torch

        attend, tokens = self.attention(case, length), None
        if case["pattern"] == "padded":
            tokens = np.arange(length) < row_lengths(case["batch"], length)[:, None]
            tokens = torch.from_numpy(tokens[:, :, None, None]).to(self.place)

        def run(query, key, value, upstream):
            output = attend(query, key, value)
            output = output if tokens is None else output * tokens
            if not case["backward"]:
                return (output,)
            return output, *torch.autograd.grad(output, (query, key, value), upstream)

        return run

    def outputs(self, case, length):
        found = self.function(case, length)(*self.inputs(case, length))
        return [x.detach().float().cpu().numpy() for x in found]

    def prepare(self, case):
        import torch

        inputs, function = self.inputs(case, case["length"]), self.function(case, case["length"])
        wait = torch.cuda.synchronize if self.place == "cuda" else lambda: None

        def run():
            function(*inputs)
            wait()

        run()
        times = self.repetitions(run)

        def measure():
            before = None
            if self.place == "cuda":
                before = torch.cuda.memory_allocated()
                torch.cuda.reset_peak_memory_stats()
            start = time.perf_counter()
            for _ in range(times):
                function(*inputs)
            wait()
            found = {"seconds": (time.perf_counter() - start) / times}
            if before is not None:
                found["megabytes"] = (torch.cuda.max_memory_allocated() - before) / 2**20
            return found

        return measure, {}

    def forget(self):
        import torch

        if self.place == "cuda":
            torch.cuda.empty_cache()
        return {}


class OursOnTorch(TorchStack):
    """`ka.attention.attend` on PyTorch."""

    def attention(self, case, length):
        import torch

        import keras_attention as ka

        terms = our_terms(ka, case)
        if case["pattern"] == "padded":
            lengths = torch.from_numpy(row_lengths(case["batch"], length)).to(self.place)
            given = {"query_lengths": lengths, "key_lengths": lengths}
            terms["mask"] = ka.attention.Visibility(terms["mask"], **given)
        return lambda *heads: ka.attention.attend(*heads, return_weights=False, **terms)


class TorchSDPA(TorchStack):
    """`scaled_dot_product_attention`, with a mask tensor where it is not causal alone."""

    def attention(self, case, length):
        import torch

        mask = self.mask(case, length)
        groups = case["heads"] // case["groups"]

        def attend(query, key, value):
            query, key, value = (x.transpose(1, 2) for x in (query, key, value))
            if mask is not None and groups > 1:  # grouped heads beside a mask form all scores
                key, value = (torch.repeat_interleave(x, groups, dim=1) for x in (key, value))
            output = torch.nn.functional.scaled_dot_product_attention(
                query,
                key,
                value,
                attn_mask=mask,
                is_causal=mask is None,
                enable_gqa=mask is None and groups > 1,
            )
            return output.transpose(1, 2)

        return attend

    def mask(self, case, length):
        import torch

        if case["pattern"] == "causal":
            return None
        index = torch.arange(length, device=self.place, dtype=torch.int32)
        lengths = torch.from_numpy(row_lengths(case["batch"], length)).to(self.place)
        seen = visible(case, index, lengths)
        if case["pattern"] != "alibi":
            return seen
        check_memory(case, length)
        each = torch.from_numpy(slopes(case["heads"])).to(self.place, torch.bfloat16)
        return alibi(case, index, each).masked_fill_(~seen, float("-inf"))


class HuggingFace(TorchSDPA):
    """The function that models of transformers call with `attn_implementation="sdpa"`."""

    def attention(self, case, length):
        import types

        from transformers.integrations.sdpa_attention import sdpa_attention_forward

        mask, groups = self.mask(case, length), case["heads"] // case["groups"]
        module = types.SimpleNamespace(
            num_key_value_groups=groups, is_causal=True, training=False, config=None
        )

        def attend(*heads):
            heads = [x.transpose(1, 2) for x in heads]
            return sdpa_attention_forward(
                module, *heads, attention_mask=mask, is_causal=mask is None
            )[0]

        return attend


STACKS = {
    "ours on JAX": OursOnJax,
    "jax.nn, cuDNN": JaxNN,
    "jax.nn, XLA": JaxNNByXLA,
    "ours on PyTorch": OursOnTorch,
    "PyTorch SDPA": TorchSDPA,
    "Hugging Face": HuggingFace,
}
