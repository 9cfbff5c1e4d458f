"""A chatbot on the self-dialogue corpus (Fainberg et al., 2018): perplexity, and what it replies.

Prints the perplexity of a subword on the development part, with the contexts that belong to the
replies and with others (shuffled with a seed), distinct n-grams of 1,000 drawn replies, the share
of the commonest of them, and the processor's minutes of training divided by two, which is what it
takes on two cores that do nothing else.

    python benchmarks/dialogues.py DATA [--language-model] --backup FOLDER

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
    """The replies, each with the context of another one."""
    sources = [pair.source for pair in pairs]
    random.Random(seed).shuffle(sources)
    return [ka.data.Pair(source, pair.target) for source, pair in zip(sources, pairs, strict=True)]


def measure_perplexity(task, pairs):
    """Of the right replies, by LiteRT files of the model itself, without its loop."""
    found = {}
    for name, quantization in (("litert", None), ("litert-int8", "int8_weights")):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "model.tflite")
            ka.export.to_litert(task.model, path, quantization=quantization)
            run, metric = ka.export.load(path), ka.training.MaskedPerplexity()
            for inputs, labels in task.make_batches(pairs, "The dialogues"):
                logits = run({key: x.numpy() for key, x in inputs.items()})["logits"]
                counts = inputs["target_ids"].numpy() != PADDING_ID
                metric.update_state(labels, logits, sample_weight=counts)
            found[name] = float(metric.result())
    return found


if __name__ == "__main__":
    parser = make_parser(__doc__)
    parser.set_defaults(epochs=1, learning_rate=2e-3)
    parser.add_argument("data", type=pathlib.Path)
    parser.add_argument("--language-model", action="store_true")
    parser.add_argument("--turns", type=int, default=3, help="of a context")
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--num-layers", type=int, default=2, help="of each side")
    parser.add_argument("--hidden-dim", type=int, default=192)
    given = parser.parse_args()
    paths = {part: given.data / f"{part}.jsonl.gz" for part in ("train", "dev", "test")}
    dialogues = ka.data.from_dialogue_files(**paths)
    options = {"label_smoothing": 0.0, "average": 0.05}  # perplexity is of what is likely
    model = {"seed": given.seed, "dropout": given.dropout, "vocabulary_size": 4000}
    model |= {"num_layers": given.num_layers, "hidden_dim": given.hidden_dim}
    if given.language_model:
        data = ka.data.join_dialogues(dialogues)
        task = ka.tasks.CausalLM.from_data(
            data, tokens="subwords", max_length=96, mask=None, **model
        )
        options["steps"] = 2000
    else:
        data = ka.data.pair_dialogues(dialogues, given.turns)
        task = ka.tasks.Seq2SeqLM.from_data(data, max_length=96, **model)
    found = train(task, data, given, **options)
    found["dev"] = task.evaluate(data.dev)
    if given.files:
        found |= score_files(task, lambda task: task.evaluate(data.dev))
        if not given.language_model:
            found["files"] = measure_perplexity(task, data.dev)
    if not given.language_model:
        shuffled = task.evaluate(shuffle_contexts(data.dev))["perplexity"]
        found["shuffled"] = shuffled
        found["shuffled_costs"] = round(shuffled / found["dev"]["perplexity"] - 1, 4)
    print(json.dumps({**task.scores, **found}))
