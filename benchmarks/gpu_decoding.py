"""Greedy generation by a model of GPT-2's size on each stack, for `gpu.py`."""

import time

import gpu_training
import numpy as np

IN_TURN = True
BASES = ("Hugging Face",)
HEADING = f"{'tokens/s':>10}"
PROMPT, NEW = 32, 128


def cases(dry_run):
    """Yield pairs (title, case): a batch of one text and a batch of 16, in bfloat16."""
    for batch in (1, 16):
        case = {**gpu_training.GPT_2, **(gpu_training.TINY if dry_run else {}), "batch": batch}
        case |= {"groups": case["heads"], "length": PROMPT + (8 if dry_run else NEW)}
        yield f"GPT-2, {case['length'] - PROMPT} tokens after {PROMPT}, B{batch}", case


def tolerance(case):
    """Return the largest difference between a chosen logit and the largest, in their deviation."""
    return 5e-2


def describe_speed(case, seconds, answer):
    """Return tokens per second as text."""
    return f"{case['batch'] * (case['length'] - PROMPT) / seconds:10.0f}"


def prompt(case):
    """Draw token ids (B, T) without padding."""
    return gpu_training.batch(case, PROMPT - 1)


class Generation:
    """The part that all stacks share. Subclasses have `generator(case)`.

    It returns a function from token ids (B, T) to the text with new tokens (B, T + new), and
    another from such a text to logits (B, T + new, V), both for NumPy arrays.
    """

    def check(self, case):
        """Compare the logits of generated tokens with the largest ones of the same position."""
        generate, logits = self.generator(case)
        text = generate(prompt(case))
        assert text.shape == (case["batch"], case["length"]), text.shape
        assert np.array_equal(text[:, :PROMPT], prompt(case))
        scores = np.asarray(logits(text), "float32")[:, PROMPT - 1 : -1]
        chosen = np.take_along_axis(scores, text[:, PROMPT:, None], axis=2)[..., 0]
        self.generate = generate
        return float(np.max(scores.max(axis=2) - chosen) / scores.std())

    def prepare(self, case):
        def run():
            start = time.perf_counter()
            self.generate(prompt(case))
            return {"seconds": time.perf_counter() - start}

        return run, {}


class OursOnJax(Generation, gpu_training.OursOnJax):
    """`ka.generation.generate`."""

    def generator(self, case):
        import keras_attention as ka

        model, new = self.model(case, "bfloat16"), case["length"] - PROMPT
        generate = lambda ids: np.concatenate(  # noqa: E731
            [ids, ka.generation.generate(model, ids, new, padding_id=None)], axis=1
        )
        return generate, lambda ids: model.predict_on_batch(ids)


class KerasHub(Generation, gpu_training.KerasHub):
    """`generate` of a model of KerasHub."""

    def generator(self, case):
        model = self.model(case, "bfloat16")
        model.compile(sampler="greedy")

        def inputs(ids, tokens):
            ids = np.pad(ids, [(0, 0), (0, case["length"] - ids.shape[1])])
            mask = np.arange(case["length"]) < tokens
            return {"token_ids": ids, "padding_mask": np.broadcast_to(mask, ids.shape)}

        def generate(ids):
            outputs = model.generate(inputs(ids, PROMPT), stop_token_ids=None)
            return np.asarray(outputs["token_ids"])

        return generate, lambda ids: model.predict_on_batch(inputs(ids, case["length"]))


class HuggingFace(Generation, gpu_training.HuggingFace):
    """`generate` of transformers with `attn_implementation="sdpa"`, not compiled."""

    def generator(self, case):
        import torch

        model, new = self.model(case, "sdpa").to(torch.bfloat16).eval(), case["length"] - PROMPT
        model.config.use_cache = True
        options = dict(max_new_tokens=new, min_new_tokens=new, do_sample=False, pad_token_id=0)

        def generate(ids):
            ids = torch.from_numpy(ids).long().to(self.place)
            with torch.no_grad():
                mask = torch.ones_like(ids)
                return model.generate(ids, attention_mask=mask, **options).cpu().numpy()

        def logits(ids):
            with torch.no_grad():
                return model(torch.from_numpy(ids).to(self.place)).logits.float().cpu().numpy()

        return generate, logits


STACKS = {"ours on JAX": OursOnJax, "KerasHub on JAX": KerasHub, "Hugging Face": HuggingFace}
