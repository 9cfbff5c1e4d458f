"""A vision transformer from a checkpoint, forward, compared with transformers and KerasHub.

    python benchmarks/vision.py [--rounds 9] [--batches 1 8]

ViT-B/16 with random weights that transformers writes, images of 224 by 224 pixels. Every stack
works in its own process, and the processes take turns. Their outputs are compared first. Ratios are
to transformers in float32. If `ka.training.fastest_dtype_policy()` is not float32, ours and
transformers also run with weights in bfloat16. Needs the extras backends and nlp.
"""

import argparse
import statistics
import tempfile

import numpy as np
import workers

SIZE, ROUNDS, BASE = 224, 9, "transformers, float32"


def write_checkpoint(folder):
    import torch
    import transformers

    torch.manual_seed(0)
    transformers.ViTModel(transformers.ViTConfig(), add_pooling_layer=False).save_pretrained(folder)


def keras_attention(folder, policy):
    import tensorflow as tf

    import keras_attention as ka

    model = ka.pretrained.load(folder, dtype=policy)
    run = tf.function(lambda x: tf.cast(model(x, training=False), "float32"), autograph=False)
    return lambda images: run(tf.constant(images)).numpy()


def hugging_face(folder, policy):
    import torch
    import transformers

    dtype = torch.float32 if policy == "float32" else torch.bfloat16
    model = transformers.ViTModel.from_pretrained(folder, add_pooling_layer=False, dtype=dtype)

    def run(images):
        pixels = torch.from_numpy(images).permute(0, 3, 1, 2).contiguous().to(dtype)
        with torch.inference_mode():
            return model(pixels)[0][:, 0].float().numpy()  # of the class token

    return run


def keras_hub(folder, policy):
    import keras_hub
    import tensorflow as tf

    model = keras_hub.models.ViTBackbone(
        image_shape=(SIZE, SIZE, 3),
        patch_size=16,
        num_layers=12,
        num_heads=12,
        hidden_dim=768,
        mlp_dim=3072,
        dtype=policy,
    )
    run = tf.function(lambda x: model(x, training=False), autograph=False)
    return lambda images: run(tf.constant(images)).numpy()


STACKS = {"transformers": hugging_face, "keras_attention": keras_attention, "KerasHub": keras_hub}


def work(stack, folder):
    library, policy = stack.split(", ")
    run = STACKS[library](folder, policy)

    def answer(batch):
        images = np.random.default_rng(0).uniform(-1, 1, (int(batch), SIZE, SIZE, 3))
        return {"result": float(np.abs(run(images.astype("float32"))).mean())}

    workers.serve(answer)


def main(batches, rounds):
    import keras_attention as ka

    names = [f"{library}, float32" for library in STACKS]
    if ka.training.fastest_dtype_policy() != "float32":
        names += [f"{library}, bfloat16" for library in ("transformers", "keras_attention")]
    print(ka.training.speed_report())
    with tempfile.TemporaryDirectory() as folder:
        write_checkpoint(folder)
        stacks = {name: workers.Worker(__file__, "--work", name, folder) for name in names}
        for batch in batches:
            workers.in_turn(stacks, batch, 2)
            turns = workers.in_turn(stacks, batch, rounds)
            print(f"\nbatch {batch}\n  {'':34} {'ms':>8} {'CPU ms':>8} {'ratio':>6}  spread")
            for name, (ratio, low, high) in workers.ratios(turns, BASE).items():
                if not name.startswith("KerasHub"):  # which has weights of its own
                    results = [turns[each][0]["result"] for each in (name, BASE)]
                    np.testing.assert_allclose(
                        *results, rtol=1e-4 if "float32" in name else 2e-2, err_msg=name
                    )
                wall, cpu = (
                    1000 * statistics.median(turn[field] for turn in turns[name])
                    for field in ("wall", "cpu")
                )
                print(f"  {name:34} {wall:8.1f} {cpu:8.1f} {ratio:6.2f}  {low:.2f} to {high:.2f}")
        for stack in stacks.values():
            stack.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 8])
    parser.add_argument("--work", nargs=2)
    arguments = parser.parse_args()
    work(*arguments.work) if arguments.work else main(arguments.batches, arguments.rounds)
