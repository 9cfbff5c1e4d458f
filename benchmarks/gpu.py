"""Kernels and training steps on a GPU: ours beside JAX's cuDNN call, PyTorch and Hugging Face.

    python benchmarks/gpu.py [kernels] [training] [--rounds 7] [--dry-run]

Each stack is a process of its own, and they take turns: A B C A B C, never at the same time. What
a stack computes is compared before it is timed: attention, outputs and gradients, with the
definition in NumPy and float32; a model's loss with that of the same model in float32 by the plain
equation. What is wrong is not timed. Ratios are of medians, with what lies between a quarter and
three quarters of the ratios round by round. Needs JAX, PyTorch, transformers and Keras with what
it imports (optree, namex, ...), and no TensorFlow. `--dry-run` runs all of it in tiny sizes on a
CPU: its times mean nothing.
"""

import argparse
import json
import os
import sys

import workers

ROUNDS = 7
LOADERS = {"kernels": "gpu_kernels", "training": "gpu_training"}


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sections", nargs="*", metavar="kernels|training")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--dry-run", action="store_true", help="tiny sizes on a CPU")
    options = parser.parse_args(arguments)
    unknown = set(options.sections) - set(LOADERS)
    if unknown:
        parser.error(f"unknown section {min(unknown)!r}: expected {' or '.join(LOADERS)}")
    for section in options.sections or LOADERS:
        run_section(section, 2 if options.dry_run else options.rounds, options.dry_run)


def run_section(section, rounds, dry_run):
    """Starts a worker for each stack, and asks them for one case after another."""
    module = __import__(LOADERS[section])
    arguments = [section, *(["--dry-run"] if dry_run else [])]
    started = {name: workers.Worker(__file__, "worker", name, *arguments) for name in module.STACKS}
    try:
        for name, worker in started.items():
            print(f"{name}: {worker.ask(json.dumps({'do': 'describe'}))['device']}", flush=True)
        for title, case in module.cases(dry_run):
            compare(title, case, module, started, rounds)
    finally:
        for worker in started.values():
            worker.close()


def compare(title, case, module, started, rounds):
    """Checks a case on every stack, times those that are right, and prints a line for each."""
    print(f"\n{title}")
    right = {}
    for name, worker in started.items():
        found = worker.ask(json.dumps({"do": "check", "case": case}))
        if "failed" in found:
            print(f"  {name:24} not run: {found['failed']}")
        elif not found["error"] <= module.TOLERANCE:
            print(f"  {name:24} WRONG by {found['error']:.1e}: not timed")
        else:
            prepared = worker.ask(json.dumps({"do": "prepare", "case": case}))
            if "failed" in prepared:
                print(f"  {name:24} not run: {prepared['failed']}")
            else:
                right[name] = {**prepared, "error": found["error"]}
    timed = {name: started[name] for name in right}
    if not timed:
        return
    answers = workers.in_turn(timed, json.dumps({"do": "time"}), rounds)
    base = next((name for name in module.BASES if name in timed), next(iter(timed)))
    ratios = workers.ratios(answers, base, "seconds")
    print(
        f"  {'':24} {'ms':>9} {'ratio':>6} {'spread':>13} {module.HEADING} {'MB':>8} {'error':>8}"
    )
    for name, given in answers.items():
        ratio, low, high = ratios[name]
        seconds = sorted(answer["seconds"] for answer in given)[len(given) // 2]
        memory = next((a["megabytes"] for a in given[::-1] if a.get("megabytes")), None)
        memory = right[name].get("megabytes") if memory is None else memory
        more = module.describe_speed(case, seconds, right[name])
        print(
            f"  {name:24} {seconds * 1e3:9.2f} {ratio:6.2f} {low:6.2f}-{high:6.2f} {more} "
            f"{'' if memory is None else format(memory, '8.0f'):>8} {right[name]['error']:8.1e}",
            flush=True,
        )
    for worker in timed.values():
        worker.ask(json.dumps({"do": "forget"}))


def serve(name, section, dry_run):
    """A worker: answers `describe`, `check`, `prepare`, `time` and `forget`, each as a dict."""
    module = __import__(LOADERS[section])
    os.environ["KERAS_BACKEND"] = "torch" if name == "ours on PyTorch" else "jax"
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # others use the device too
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
            if do == "check":
                return {"error": stack.check(request["case"])}
            prepared["run"], found = stack.prepare(request["case"])
            return found
        except Exception as error:  # a peer that cannot is a line of the table
            return {"failed": f"{type(error).__name__}: {str(error).splitlines()[0][:120]}"}

    workers.serve(answer)


if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    if sys.argv[1:2] == ["worker"]:
        serve(sys.argv[2], sys.argv[3], "--dry-run" in sys.argv[4:])
    else:
        main(sys.argv[1:])
