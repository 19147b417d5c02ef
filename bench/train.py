"""Training steps of f2 and of PyTorch on the same cores: medians of alternating runs.

    cargo build --release
    python bench/train.py target/release/f2 --rounds 5 --threads 2

needs `pip install torch numpy`. Prints a Markdown table and writes every run to train.jsonl.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
from pathlib import Path

SHAPE = dict(layers=4, width=256, sequence=256, batch=8)
LINES = [
    dict(objective="mle", vocab=8000, classes=0),
    dict(objective="mle", vocab=30000, classes=0),
    dict(objective="f2", vocab=30000, classes=10),
]


def run(command, threads):
    """Standard output and the largest resident size of a command, in bytes."""
    environment = os.environ | {"OMP_NUM_THREADS": str(threads), "F2_THREADS": str(threads)}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit(f"failed: {' '.join(map(str, command))}")
    return output, usage.ru_maxrss * 1024


def ours(program, line, steps, threads):
    shape = [f"--{key}={value}" for key, value in SHAPE.items()]
    command = [program, "bench", "train", *shape, f"--vocab={line['vocab']}", f"--objective={line['objective']}"]
    command += [f"--classes={line['classes']}"] if line["classes"] else []
    output, memory = run([*command, f"--steps={steps}", "--json"], threads)
    return json.loads(output)["ms_per_step"], memory


def torch(line, steps, threads):
    command = [sys.executable, Path(__file__).with_name("torch_gpt.py")]
    command += ["--layers=4", "--dim=256", "--seq=256", "--batch=8", f"--vocab={line['vocab']}"]
    command += [f"--classes={line['classes']}", f"--steps={steps}", "--warm=2"]
    output, memory = run(command, threads)
    return float(re.search(r"([\d.]+) ms/step", output)[1]), memory


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("program")
    arguments.add_argument("--rounds", type=int, default=5)
    arguments.add_argument("--steps", type=int, default=6)
    arguments.add_argument("--threads", type=int, default=os.cpu_count())
    arguments.add_argument("--log", type=Path, default=Path("train.jsonl"))
    a = arguments.parse_args()
    print("| objective | vocabulary | classes | ours, ms | PyTorch, ms | times faster | ours, MB | PyTorch, MB |")
    print("|---|---|---|---|---|---|---|---|", flush=True)
    with a.log.open("a") as log:
        for line in LINES:
            runs = {"ours": [], "torch": []}
            for _ in range(a.rounds):
                runs["ours"].append(ours(a.program, line, a.steps, a.threads))
                runs["torch"].append(torch(line, a.steps, a.threads))
                for name, measured in runs.items():
                    milliseconds, memory = measured[-1]
                    record = dict(line, who=name, ms_per_step=milliseconds, peak_bytes=memory, threads=a.threads)
                    log.write(json.dumps(record) + "\n")
            times = {name: statistics.median(ms for ms, _ in measured) for name, measured in runs.items()}
            memory = {name: max(bytes for _, bytes in measured) / 1e6 for name, measured in runs.items()}
            cells = [line["objective"], line["vocab"], line["classes"] or "", f"{times['ours']:.0f}"]
            cells += [f"{times['torch']:.0f}", f"{times['torch'] / times['ours']:.2f}"]
            cells += [f"{memory['ours']:.0f}", f"{memory['torch']:.0f}"]
            print("| " + " | ".join(map(str, cells)) + " |", flush=True)


if __name__ == "__main__":
    main()
