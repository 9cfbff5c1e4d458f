"""A chatbot on the self-dialogue corpus (Fainberg et al., 2018): perplexity and diversity.

    python benchmarks/dialogues.py DATA [--language-model] --backup FOLDER

Prints the perplexity per subword on the development split, with the right contexts and with
shuffled contexts. Also prints the distinct n-grams of 1,000 sampled replies, the share of the most
common reply, and the CPU minutes of training divided by two.

DATA is a folder with train.jsonl.gz, dev.jsonl.gz and test.jsonl.gz.
"""

import json
import pathlib
import random
import tempfile

from training_runs import make_parser, score_files, train

import keras_attention as ka
from keras_attention.data.tokenizers.subwords import PADDING_ID


def shuffle_contexts(pairs, seed=0):
    """Return the pairs with their contexts (sources) shuffled, so that they do not fit."""
    sources = [pair.source for pair in pairs]
    random.Random(seed).shuffle(sources)
    return [ka.data.Pair(source, pair.target) for source, pair in zip(sources, pairs, strict=True)]


def measure_perplexity(task, pairs):
    """Compute the perplexity of the right replies with LiteRT files that do not generate.

    Returns:
        dict, "litert" and "litert-int8" -> perplexity.
    """
    results = {}
    for name, quantization in (("litert", None), ("litert-int8", "int8_weights")):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "model.tflite")
            ka.export.to_litert(task.model, path, quantization=quantization)
            run, metric = ka.export.load(path), ka.training.MaskedPerplexity()
            for inputs, labels in task.make_batches(pairs, "The dialogues"):
                logits = run({key: x.numpy() for key, x in inputs.items()})["logits"]
                counts = inputs["target_ids"].numpy() != PADDING_ID
                metric.update_state(labels, logits, sample_weight=counts)
            results[name] = float(metric.result())
    return results


if __name__ == "__main__":
    parser = make_parser(__doc__)
    parser.set_defaults(epochs=1, learning_rate=2e-3)
    parser.add_argument("data", type=pathlib.Path)
    parser.add_argument("--language-model", action="store_true")
    parser.add_argument("--turns", type=int, default=3, help="number of turns in a context")
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--num-layers", type=int, default=2, help="layers of each side")
    parser.add_argument("--hidden-dim", type=int, default=192)
    arguments = parser.parse_args()
    paths = {part: arguments.data / f"{part}.jsonl.gz" for part in ("train", "dev", "test")}
    dialogues = ka.data.from_dialogue_files(**paths)
    options = {"label_smoothing": 0.0, "average": 0.05}  # perplexity needs the probabilities
    model = {"seed": arguments.seed, "dropout": arguments.dropout, "vocabulary_size": 4000}
    model |= {"num_layers": arguments.num_layers, "hidden_dim": arguments.hidden_dim}
    if arguments.language_model:
        data = ka.data.join_dialogues(dialogues)
        task = ka.tasks.CausalLM.from_data(
            data, tokens="subwords", max_length=96, mask=None, **model
        )
        options["steps"] = 2000
    else:
        data = ka.data.pair_dialogues(dialogues, arguments.turns)
        task = ka.tasks.Seq2SeqLM.from_data(data, max_length=96, **model)
    results = train(task, data, arguments, **options)
    results["dev"] = task.evaluate(data.dev)
    if arguments.files:
        results |= score_files(task, lambda task: task.evaluate(data.dev))
        if not arguments.language_model:
            results["files"] = measure_perplexity(task, data.dev)
    if not arguments.language_model:
        shuffled = task.evaluate(shuffle_contexts(data.dev))["perplexity"]
        results["shuffled"] = shuffled
        results["shuffled_costs"] = round(shuffled / results["dev"]["perplexity"] - 1, 4)
    print(json.dumps({**task.scores, **results}))
