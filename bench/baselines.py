"""Training steps of the baselines compared with maximum likelihood, in alternating runs on the same cores.

    cargo build --release
    python bench/baselines.py target/release/f2 --rounds 5 --threads 2

Prints a Markdown table of medians and their ratios to `mle`, and writes every run to baselines.jsonl.
A step of `unlikelihood-sequence` is at random a token step or a sequence step; the median is over both.
"""

import argparse
import json
import os
import statistics
import subprocess
from pathlib import Path

OBJECTIVES = ["mle", "unlikelihood", "face", "unlikelihood-sequence"]


def measure(program, objective, arguments):
    shape = {"layers": arguments.layers, "width": arguments.width, "sequence": arguments.sequence}
    shape |= {"batch": arguments.batch, "vocab": arguments.vocab, "steps": arguments.steps}
    command = [program, "bench", "train", f"--objective={objective}", "--json"]
    command += [f"--{key}={value}" for key, value in shape.items()]
    environment = os.environ | {"F2_THREADS": str(arguments.threads)}
    output = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=environment, check=True).stdout
    return json.loads(output)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--sequence", type=int, default=256)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--vocab", type=int, default=30000)
    parser.add_argument("--steps", type=int, default=10)
    arguments = parser.parse_args()
    arguments.program = arguments.program.resolve()
    times = {objective: [] for objective in OBJECTIVES}
    with open("baselines.jsonl", "a") as log:
        for turn in range(arguments.rounds):
            for objective in OBJECTIVES:
                line = measure(arguments.program, objective, arguments)
                times[objective].append(line["ms_per_step"])
                log.write(json.dumps(line | {"round": turn, "vocab": arguments.vocab}) + "\n")
                log.flush()
    print("| objective | ms per step | times `mle` |\n|---|--:|--:|")
    for objective in OBJECTIVES:
        median = statistics.median(times[objective])
        # Ratios within each round: load on the machine affects adjacent runs alike.
        ratio = statistics.median(a / b for a, b in zip(times[objective], times["mle"]))
        print(f"| {objective} | {median:.1f} | {ratio:.2f} |")


if __name__ == "__main__":
    main()
