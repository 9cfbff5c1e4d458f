"""Attention, training steps and generation on a GPU, compared with JAX, PyTorch and their models.

    python benchmarks/gpu.py [kernels] [training] [decoding] [--rounds 7] [--minutes 20] [--dry-run]

Each stack has its own process, and the processes take turns (A B C A B C). Results are checked
before they are timed: outputs and gradients of attention against the definition in NumPy and
float32, the loss of a model against the same model in float32, and generated tokens against the
logits of the whole text. A stack with wrong results is not timed. Ratios are ratios of medians,
with the quartiles of the ratios per round. Needs JAX, PyTorch, transformers, Keras with its
dependencies (optree, namex, ...) and KerasHub, but not TensorFlow. No case begins after
`--minutes`. `--dry-run` runs everything in tiny sizes on a CPU, where times are meaningless.
"""

import argparse
import json
import os
import sys
import time

import workers

ROUNDS = 7
SECTIONS = {"kernels": "gpu_kernels", "training": "gpu_training", "decoding": "gpu_decoding"}


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sections", nargs="*", metavar="kernels|training|decoding")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--dry-run", action="store_true", help="tiny sizes on a CPU")
    options = parser.parse_args(arguments)
    unknown = set(options.sections) - set(SECTIONS)
    if unknown:
        parser.error(f"unknown section {min(unknown)!r}: expected {' or '.join(SECTIONS)}")
    end = time.monotonic() + 60 * options.minutes
    for section in options.sections or SECTIONS:
        try:
            run_section(section, 2 if options.dry_run else options.rounds, options.dry_run, end)
        except RuntimeError as error:  # a worker died, and the other sections do not need it
            print(error, flush=True)


def run_section(section, rounds, dry_run, end):
    """Start a worker process for each stack, and send them one case after another until `end`."""
    module = __import__(SECTIONS[section])
    arguments = [section, *(["--dry-run"] if dry_run else [])]
    started = {name: workers.Worker(__file__, "worker", name, *arguments) for name in module.STACKS}
    try:
        each = {name: name for name in started}
        for name, answer in workers.ask_groups(started, each, '{"do": "describe"}').items():
            print(f"{name}: {answer['device']}", flush=True)
        for title, case in module.cases(dry_run):
            if time.monotonic() < end:
                compare(title, case, module, started, rounds)
    finally:
        for worker in started.values():
            worker.close()


def compare(title, case, module, started, rounds):
    """Check a case on every stack, time the stacks whose results are right, and print them."""
    print(f"\n{title}")
    groups = {name: name for name in started}
    if module.IN_TURN:  # XLA measures which products are fastest, so nothing on JAX runs meanwhile
        groups = {name: module.STACKS[name].on_torch for name in started}
    request = json.dumps({"do": "prepare", "case": case, "tolerance": module.tolerance(case)})
    right = {}
    for name, result in workers.ask_groups(started, groups, request).items():
        if "failed" in result:
            print(f"  {name:24} not run: {result['failed']}")
        else:
            right[name] = result
    timed = {name: worker for name, worker in started.items() if name in right}
    if not timed:
        return
    answers = workers.in_turn(timed, '{"do": "time"}', 1 + rounds)
    answers = {name: each[1:] for name, each in answers.items()}  # the first round warms up
    base = next((name for name in module.BASES if name in timed), next(iter(timed)))
    ratios = workers.ratios(answers, base, "seconds")
    heading = f"{module.HEADING} {'MB':>8} {'error':>8}  kernel"
    print(f"  {'':24} {'ms':>9} {'ratio':>6} {'spread':>13} {heading}")
    for name, answers_by_round in answers.items():
        ratio, low, high = ratios[name]
        seconds = sorted(one["seconds"] for one in answers_by_round)[len(answers_by_round) // 2]
        memory = next((a["megabytes"] for a in answers_by_round[::-1] if a.get("megabytes")), None)
        memory = right[name].get("megabytes") if memory is None else memory
        more = module.describe_speed(case, seconds, answers_by_round[-1])
        print(
            f"  {name:24} {seconds * 1e3:9.3f} {ratio:6.2f} {low:6.2f}-{high:6.2f} {more} "
            f"{'' if memory is None else format(memory, '8.0f'):>8} {right[name]['error']:8.1e}"
            f"  {right[name].get('kernel', '')}",
            flush=True,
        )
    for worker in timed.values():
        worker.ask('{"do": "forget"}')


def serve(name, section, dry_run):
    """Serve as the worker of a stack: answer JSON requests with a dict.

    A request is `describe`, `prepare`, `time` or `forget`. `prepare` also checks the results.
    """
    module = __import__(SECTIONS[section])
    os.environ["KERAS_BACKEND"] = "torch" if module.STACKS[name].on_torch else "jax"
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # others use it, too
    stack = module.STACKS[name](dry_run)
    prepared = {}

    def answer(line):
        request = json.loads(line)
        do = request["do"]
        if do == "describe":
            return {"device": stack.device()}
        if do == "forget":
            prepared.clear()
            return stack.forget()
        if do == "time":
            return prepared["run"]()
        try:
            error = stack.check(request["case"])
            if not error <= request["tolerance"]:
                return {"failed": f"WRONG by {error:.1e}"}
            prepared["run"], result = stack.prepare(request["case"])
            return {**result, "error": error}
        except Exception as error:  # report it in the table
            return {"failed": f"{type(error).__name__}: {str(error).splitlines()[0][:120]}"}

    workers.serve(answer)


if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    if sys.argv[1:2] == ["worker"]:
        serve(sys.argv[2], sys.argv[3], "--dry-run" in sys.argv[4:])
    else:
        main(sys.argv[1:])
