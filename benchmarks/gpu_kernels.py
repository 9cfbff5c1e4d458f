"""The attention of each stack for `gpu.py`, and its definition in NumPy."""

import time

import numpy as np

IN_TURN = False
BASES = ("jax.nn, cuDNN", "jax.nn, XLA")
HEADING = f"{'TFLOP/s':>8}"
TOKENS = 16384  # tokens of a batch
WINDOW = 1024
PATTERNS = ("causal", "window", "padded", "alibi")
# (dtype, head size, patterns, lengths), the most important first
CASES = (
    ("bfloat16", 64, PATTERNS, (1024, 4096)),
    ("bfloat16", 64, ("causal", "window"), (16384,)),
    ("float32", 64, ("causal", "padded"), (1024,)),
    ("bfloat16", 128, ("causal", "window"), (4096, 16384)),
    ("float32", 64, ("causal", "window"), (4096,)),
    ("bfloat16", 64, ("causal", "window"), (32768,)),
)


def cases(dry_run):
    """Yield (title, case) for patterns, lengths, head sizes and dtypes, forward and both passes."""
    chosen = (("bfloat16", 8, PATTERNS, (32,)), ("float32", 8, ("causal",), (32,)))
    for dtype, size, patterns, lengths in chosen if dry_run else CASES:
        for length in lengths:
            for pattern in patterns:
                for passes in ("forward", "both passes"):
                    case = {
                        "dtype": dtype,
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
                    yield f"{pattern}, {dtype}, {shape}, {passes}", case


def tolerance(case):
    """Return the tolerance relative to the largest value. For float32 it allows TF32 products."""
    return 3e-2 if case["dtype"] == "bfloat16" else 5e-3


def describe_speed(case, seconds, answer):
    """Return the speed in TFLOP/s as text. Only visible pairs of query and key are counted."""
    length, window = case["length"], case["window"]
    seen = length * (length + 1) / 2
    if case["pattern"] == "window" and window < length:
        seen = window * (window + 1) / 2 + (length - window) * window
    pairs = case["batch"] * case["heads"] * seen
    if case["pattern"] == "padded":
        lengths = row_lengths(case["batch"], length).astype("float64")
        pairs = case["heads"] * float(np.sum(lengths**2))
    products = 2 + 5 * case["backward"]
    return f"{2 * products * pairs * case['size'] / seconds / 1e12:8.1f}"


def row_lengths(batch, length):
    """Return the number of tokens of each padded row, three quarters of `length` on average."""
    return np.linspace(length / 2, length, batch).round().astype("int32")


def slopes(heads):
    """Return ALiBi's slopes (N,). The number of heads must be a power of two."""
    return 2.0 ** (-8.0 / heads * np.arange(1, heads + 1, dtype="float32"))


def arrays(case, length):
    """Draw query (B, T, N, H), key, value (B, T, K, H) and the gradient of the output, float32."""
    random = np.random.default_rng(0)
    batch, size = case["batch"], case["size"]
    heads = [case["heads"], case["groups"], case["groups"], case["heads"]]
    return [random.standard_normal((batch, length, n, size), dtype="float32") for n in heads]


def rounded(x, dtype):
    """Round `x` to `dtype`, so that the definition has the same inputs as the stacks."""
    import ml_dtypes

    return x.astype(np.dtype(getattr(ml_dtypes, dtype, dtype))).astype("float32")


def visible(case, index, lengths):
    """Return the mask of visible pairs of query and key: bool (B or 1, 1, T or 1, T).

    `index` is 0, 1, ..., T - 1, and `lengths` (B,) is the result of `row_lengths`. Both may be
    arrays of NumPy, JAX or PyTorch.
    """
    i, j = index[:, None], index[None]
    if case["pattern"] == "padded":  # an encoder
        return j[None, None] < lengths[:, None, None, None]
    seen = (j <= i)[None, None]
    return seen & (i - j < case["window"]) if case["pattern"] == "window" else seen


def alibi(case, index, slopes):
    """Return ALiBi's bias -slope · |i - j|, float (1, N, T, T), for arrays of any library."""
    return (-slopes[:, None, None] * abs(index[:, None] - index[None]))[None]


def check_memory(case, length, times=1):
    """Raise a MemoryError if `times` a bfloat16 array (N, T, T) needs more than 16 GB."""
    gigabytes = times * case["heads"] * length**2 * 2 / 2**30
    if gigabytes > 16:
        raise MemoryError(f"scores or bias would need {gigabytes:.0f} GB")


def define(case, length):
    """Compute attention by its definition in float32: output and gradients of query, key, value."""
    query, key, value, upstream = (rounded(x, case["dtype"]) for x in arrays(case, length))
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

    Subclasses define `attention(case, length)`, which returns a function of query, key and value,
    and how to compile, run and measure it.
    """

    on_torch = False

    def __init__(self, dry_run):
        self.dry_run, self.checked = dry_run, {}

    def check(self, case):
        """Return the largest difference from the definition, relative to the largest value.

        It is computed once for all lengths.
        """
        length = case["check_length"]
        case = {**case, "window": min(case["window"], length // 4), "batch": 2, "length": length}
        key = tuple(case.values())
        if key not in self.checked:
            self.checked[key] = self.compare(case, length)
        return self.checked[key]

    def compare(self, case, length):
        outputs = self.outputs(case, length)
        expected = define(case, length)[: len(outputs)]
        errors = [
            np.abs(ours - theirs).max() / np.abs(theirs).max()
            for ours, theirs in zip(outputs, expected, strict=True)
        ]
        return float(max(errors)) if np.all(np.isfinite(errors)) else float("inf")

    def outputs(self, case, length):
        """Return the output and, if `case["backward"]`, the three gradients, as float32 arrays."""
        raise NotImplementedError

    def prepare(self, case):
        """Compile a case.

        Returns:
            A function that returns {"seconds": time of a run}, and a dict of other results, such as
            "megabytes".
        """
        raise NotImplementedError

    def device(self):
        raise NotImplementedError

    def forget(self):
        return {}

    def timed(self, run, wait):
        """Return a function that measures `run`, as often as takes a twentieth of a second."""
        times = 1

        def measure():
            nonlocal times
            start = time.perf_counter()
            for _ in range(times):
                outputs = run()
            wait(outputs)
            seconds = (time.perf_counter() - start) / times
            times = 1 if self.dry_run else max(1, min(200, round(0.05 / seconds)))
            return {"seconds": seconds}

        return measure


class JaxStack(Stack):
    """A stack on JAX, compiled once. Memory comes from the compiler."""

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

        return [jnp.asarray(x, case["dtype"]) for x in arrays(case, length)]

    def outputs(self, case, length):
        import jax

        outputs = jax.jit(self.function(case, length))(*self.inputs(case, length))
        return [np.asarray(x, "float32") for x in outputs]

    def prepare(self, case):
        import jax

        inputs = self.inputs(case, case["length"])
        compiled = jax.jit(self.function(case, case["length"])).lower(*inputs).compile()
        jax.block_until_ready(compiled(*inputs))
        memory = compiled.memory_analysis()
        result = {"megabytes": memory.temp_size_in_bytes / 2**20} if memory else {}
        result["kernel"] = "cuDNN" if "__cudnn$fmha" in compiled.as_text() else "XLA"
        return self.timed(lambda: compiled(*inputs), jax.block_until_ready), result


class OursOnJax(JaxStack):
    """`ka.attention.attend` with its default kernel."""

    def attention(self, case, length):
        import jax.numpy as jnp

        return our_attention(case, jnp.asarray(row_lengths(case["batch"], length)))


def our_attention(case, lengths):
    """Return `ka.attention.attend` with the terms of a case. `lengths` (B,) is for `padded`."""
    import keras_attention as ka

    mask, position = ka.masks.Causal(), None
    if case["pattern"] == "window":
        mask = mask & ka.masks.Window(case["window"])
    if case["pattern"] == "padded":
        mask = ka.attention.Visibility(query_lengths=lengths, key_lengths=lengths)
    if case["pattern"] == "alibi":
        position = "alibi"
    return lambda *heads: ka.attention.attend(
        *heads, return_weights=False, mask=mask, position=position
    )


class JaxNN(JaxStack):
    """`jax.nn.dot_product_attention` by cuDNN, with its own options for each pattern."""

    implementation = "cudnn"

    def attention(self, case, length):
        import jax
        import jax.numpy as jnp

        options = {"is_causal": case["pattern"] != "padded"}
        if case["pattern"] == "window":
            options["local_window_size"] = (case["window"] - 1, 0)
        if case["pattern"] == "alibi":
            check_memory(case, length)
            index, each = jnp.arange(length), jnp.asarray(slopes(case["heads"]), case["dtype"])
            options["bias"] = alibi(case, index, each)
        if case["pattern"] == "padded":
            lengths = jnp.asarray(row_lengths(case["batch"], length))
            options |= {"query_seq_lengths": lengths, "key_value_seq_lengths": lengths}
        return lambda *heads: jax.nn.dot_product_attention(
            *heads, implementation=self.implementation, **options
        )


class JaxNNByXLA(JaxNN):
    """`jax.nn.dot_product_attention` without cuDNN."""

    implementation = "xla"

    def attention(self, case, length):
        check_memory(case, length, case["batch"] * 2)  # scores are float32
        return super().attention(case, length)


class Keras(JaxStack):
    """`keras.ops.dot_product_attention`, with a mask or bias if it is not only causal."""

    def attention(self, case, length):
        import jax.numpy as jnp
        import keras

        options = {"is_causal": case["pattern"] != "padded"}
        if case["pattern"] in ("window", "padded"):
            lengths = jnp.asarray(row_lengths(case["batch"], length))
            options["mask"] = visible(case, jnp.arange(length), lengths)
        if case["pattern"] == "alibi":
            check_memory(case, length)
            each = jnp.asarray(slopes(case["heads"]), case["dtype"])
            options["bias"] = alibi(case, jnp.arange(length), each)
        return lambda *heads: keras.ops.dot_product_attention(*heads, **options)


class TorchStack(Stack):
    """A stack on PyTorch in eager mode. Memory comes from the allocator."""

    on_torch = True

    @property
    def place(self):
        import torch

        return "cuda" if torch.cuda.is_available() else "cpu"

    def device(self):
        import torch

        return torch.cuda.get_device_name() if self.place == "cuda" else "cpu"

    def inputs(self, case, length):
        import torch

        dtype = getattr(torch, case["dtype"])
        tensors = [torch.from_numpy(x).to(self.place, dtype) for x in arrays(case, length)]
        return [x.requires_grad_(case["backward"]) for x in tensors[:3]] + tensors[3:]

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
        outputs = self.function(case, length)(*self.inputs(case, length))
        return [x.detach().float().cpu().numpy() for x in outputs]

    def prepare(self, case):
        import torch

        inputs, function = self.inputs(case, case["length"]), self.function(case, case["length"])
        if self.place == "cpu":
            function(*inputs)
            return self.timed(lambda: function(*inputs), lambda _: None), {"kernel": ""}
        result = {"kernel": kernel_name(lambda: function(*inputs))}
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        function(*inputs)
        result["megabytes"] = (torch.cuda.max_memory_allocated() - before) / 2**20
        return self.timed(lambda: function(*inputs), lambda _: torch.cuda.synchronize()), result

    def forget(self):
        import torch

        if self.place == "cuda":
            torch.cuda.empty_cache()
        return {}


def kernel_name(run):
    """Return which attention kernel of PyTorch `run` uses on a GPU, found by its profiler."""
    import torch

    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        run()
        torch.cuda.synchronize()
    names = " ".join(event.key.lower() for event in profile.key_averages())
    known = {"cudnn": "cuDNN", "flash": "flash", "fmha": "memory-efficient"}
    return next((kind for part, kind in known.items() if part in names), "math")


class OursOnTorch(TorchStack):
    """`ka.attention.attend` on PyTorch."""

    def attention(self, case, length):
        import torch

        lengths = torch.from_numpy(row_lengths(case["batch"], length)).to(self.place)
        return our_attention(case, lengths)


class TorchSDPA(TorchStack):
    """`scaled_dot_product_attention`, with a mask tensor if it is not only causal."""

    def attention(self, case, length):
        import torch

        mask = self.mask(case, length)
        groups = case["heads"] // case["groups"]

        def attend(query, key, value):
            query, key, value = (x.transpose(1, 2) for x in (query, key, value))
            if mask is not None and groups > 1:  # a mask needs all heads
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
        each = torch.from_numpy(slopes(case["heads"])).to(self.place, getattr(torch, case["dtype"]))
        return alibi(case, index, each).masked_fill_(~seen, float("-inf"))


STACKS = {
    "ours on JAX": OursOnJax,
    "jax.nn, cuDNN": JaxNN,
    "jax.nn, XLA": JaxNNByXLA,
    "Keras on JAX": Keras,
    "ours on PyTorch": OursOnTorch,
    "PyTorch SDPA": TorchSDPA,
}
