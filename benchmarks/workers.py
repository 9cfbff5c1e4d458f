"""Worker processes, one per stack, which work in turn (A B C A B C) and never at the same time."""

import concurrent.futures
import json
import statistics
import subprocess
import sys
import time


class Worker:
    """A process that runs `script` with `arguments`. The script must call `serve`."""

    def __init__(self, script, *arguments):
        command = [sys.executable, script, *map(str, arguments)]
        pipes = dict(stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.process = subprocess.Popen(command, **pipes)

    def ask(self, request):
        """Send a request, one line of text, and return the answer of the worker, a dict."""
        print(request, file=self.process.stdin, flush=True)
        for line in self.process.stdout:
            if line.startswith("@"):
                return json.loads(line[1:])
        raise RuntimeError(f"{self.process.args[2:]} stopped: run it by itself to see why")

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def serve(answer):
    """Answer every line of standard input with the dict `answer(line)`, and how long it took."""
    for line in sys.stdin:
        cpu, wall = time.process_time(), time.perf_counter()
        result = answer(line.strip())
        took = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
        print("@" + json.dumps({**took, **(result or {})}), flush=True)


def ask_groups(workers, groups, request):
    """Send a request to all workers. Only workers of different groups work at the same time.

    `groups` is {name: name of a group}. Return {name: answer}.
    """

    def ask_group(group):
        return {n: w.ask(request) for n, w in workers.items() if groups[n] == group}

    with concurrent.futures.ThreadPoolExecutor() as pool:
        answers = pool.map(ask_group, sorted({groups[name] for name in workers}))
        return {name: answer for part in answers for name, answer in part.items()}


def in_turn(workers, request, rounds):
    """Send a request to each worker in turn, `rounds` times. Return {name: list of answers}."""
    answers = {name: [] for name in workers}
    for _ in range(rounds):
        for name, worker in workers.items():
            answers[name].append(worker.ask(request))
    return answers


def ratios(answers, base, field="wall"):
    """Compute how the times of workers compare with those of the worker `base`.

    Returns:
        dict, name -> (ratio of the medians, lower quartile and upper quartile of the ratios per
        round).
    """
    reference = [answer[field] for answer in answers[base]]
    result = {}
    for name, answers_by_round in answers.items():
        times = [answer[field] for answer in answers_by_round]
        pairs = sorted(a / b for a, b in zip(times, reference, strict=True))
        quarters = (pairs[round(q * (len(pairs) - 1))] for q in (0.25, 0.75))
        result[name] = statistics.median(times) / statistics.median(reference), *quarters
    return result
