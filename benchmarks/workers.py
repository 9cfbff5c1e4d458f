"""One process for each stack, which work in turn: A B C A B C, and never at the same time."""

import json
import statistics
import subprocess
import sys
import time


class Worker:
    """A process that runs `script arguments`, and `serve` in it."""

    def __init__(self, script, *arguments):
        command = [sys.executable, script, *map(str, arguments)]
        pipes = dict(stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.process = subprocess.Popen(command, **pipes)

    def ask(self, request):
        """What the worker answers to `request`, a word or a number."""
        print(request, file=self.process.stdin, flush=True)
        for line in self.process.stdout:
            if line.startswith("@"):
                return json.loads(line[1:])
        raise RuntimeError(f"{self.process.args[2:]} stopped: run it by itself to see why")

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def serve(answer):
    """Answers every line of standard input with `answer(line)`, a dict, and how long that took."""
    for line in sys.stdin:
        cpu, wall = time.process_time(), time.perf_counter()
        found = answer(line.strip())
        took = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
        print("@" + json.dumps({**took, **(found or {})}), flush=True)


def in_turn(workers, request, rounds):
    """`rounds` answers of each worker: dict, name -> list of dicts."""
    answers = {name: [] for name in workers}
    for _ in range(rounds):
        for name, worker in workers.items():
            answers[name].append(worker.ask(request))
    return answers


def ratios(answers, base, field="wall"):
    """{name: (ratio of medians, lower and upper quarter of the ratios round by round)}."""
    reference = [answer[field] for answer in answers[base]]
    found = {}
    for name, given in answers.items():
        times = [answer[field] for answer in given]
        pairs = sorted(a / b for a, b in zip(times, reference, strict=True))
        quarters = (pairs[round(q * (len(pairs) - 1))] for q in (0.25, 0.75))
        found[name] = statistics.median(times) / statistics.median(reference), *quarters
    return found
