"""Tests parallel training on one GPU: identical results, speed, overlap, a killed rank, resuming, and errors.

    cargo build --release
    python bench/parallel.py target/release/f2 --work /tmp/parallel

needs an NVIDIA GPU, its driver, NVRTC, cuBLASLt and NCCL (`f2 doctor`); the NCCL installed by `pip install torch` is
found automatically. Ranks share the GPU, started as by a launcher or by `--gpus` with F2_SHARE_GPU=1: because of
different values of NCCL_HOSTID, NCCL treats them as separate hosts that communicate over sockets, so their speed says
nothing about scaling. Prints a table of times and a line for every check; the exit code is 1 if a check failed.
"""

import argparse
import hashlib
import json
import os
import random
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import time
from pathlib import Path

SMALL = [
    *("--preset", "demo", "--objective", "f2", "--set", "model.layers=2", "--set", "batch.size=16"),
    *("--set", "schedule.warmup_steps=10", "--set", "evaluation.every_steps=25"),
    *("--set", "evaluation.max_tokens=4096"),
]
# The paper's model; validation would take longer than the steps.
PAPER = [
    *("--preset", "wikitext103", "--objective", "f2", "--set", "batch.size=8"),
    *("--set", "schedule.warmup_steps=10", "--set", "evaluation.every_steps=0"),
]
LIMIT = 120  # seconds for any one command


class Checks:
    """The checks that passed and those that failed."""

    def __init__(self):
        self.failed = 0

    def __call__(self, holds, words):
        self.failed += not holds
        print(f"{'pass' if holds else 'FAIL'}: {words}", flush=True)
        return holds


def libraries():
    """The environment, with the NCCL of a Python package, if installed."""
    environment = dict(os.environ)
    for folder in map(Path, sys.path):
        found = sorted(folder.glob("nvidia/nccl/lib"))
        if found:
            paths = [str(found[0]), environment.get("LD_LIBRARY_PATH", "")]
            environment["LD_LIBRARY_PATH"] = ":".join(filter(None, paths))
            break
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT"):
        environment.pop(name, None)
    return environment


class Bench:
    def __init__(self, program, work):
        self.program, self.work, self.environment = program, work, libraries()
        self.check = Checks()

    def f2(self, *words, limit=LIMIT, **variables):
        """Runs a command; returns exit code, standard output and error, and seconds."""
        began = time.monotonic()
        process = self.start(*words, **variables)
        return (*finish(process, limit), time.monotonic() - began)

    def must(self, *words):
        code, output, error, _ = self.f2(*words)
        if code != 0:
            sys.exit(f"f2 {' '.join(map(str, words))} ended with {code}:\n{error[-3000:]}")
        return output

    def start(self, *words, **variables):
        command = [str(self.program), *map(str, words)]
        pipes = dict(stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        return subprocess.Popen(command, env=self.environment | variables, cwd=self.work, **pipes)

    def ranks(self, count, *words, overlap=None):
        """Starts `count` ranks of `f2 train` on the one GPU, as a launcher would. `overlap` has 0 or 1 for
        every rank."""
        port = free_port()
        shared = dict(WORLD_SIZE=str(count), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
        return [
            self.start(
                *("train", *words, "--device", "cuda:0", "--threads", "4"),
                **shared, RANK=str(rank), LOCAL_RANK=str(rank), NCCL_HOSTID=f"rank-{rank}",
                **({} if overlap is None else {"F2_EXCHANGE_OVERLAP": str(overlap[rank])}),
            )
            for rank in range(count)
        ]

    def train(self, count, *words, overlap=None):
        """Trains with `count` ranks; returns whether all succeeded, and the error of the first that failed."""
        if count == 1:
            ended = [self.f2("train", *words, "--device", "cuda:0", "--threads", "4")[:3]]
        else:
            ended = [finish(rank, LIMIT) for rank in self.ranks(count, *words, overlap=overlap)]
        bad = [(rank, code, error) for rank, (code, _, error) in enumerate(ended) if code != 0]
        for rank, code, error in bad[:1]:
            print(f"  rank {rank} ended with {code}: {error[-1500:]}", flush=True)
        return not bad


def finish(process, limit):
    """Waits for a process and kills it at the time limit; returns exit code, standard output and error."""
    try:
        output, error = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        process.kill()
        output, error = process.communicate()
        return "time limit", output, error
    return process.returncode, output, error


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def steps_of(run):
    """The steps in a run's log; a line that is being written is left out."""
    path = run / "events.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    events = []
    for line in lines:
        try:
            events.append(json.loads(line))
        except ValueError:
            continue
    return [event for event in events if event["event"] == "step"]


def digest(run):
    """The bytes of the newest checkpoint's parameters and moments."""
    newest = max((run / "checkpoints").glob("step-*"), key=lambda path: int(path.name.split("-")[1]))
    files = [newest / "model.safetensors", newest / "optimizer.safetensors"]
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:16]


def write_corpus(bench):
    """Lines of invented words with Zipf's frequencies, prepared with two sizes of vocabulary."""
    draw = random.Random(1)
    letters = ["ka", "ri", "to", "ne", "su", "mo", "la", "pe", "vi", "do", "zu", "ha"]
    words = ["".join(draw.choices(letters, k=draw.randint(1, 6))) for _ in range(120_000)]
    weights = [1 / rank for rank in range(1, len(words) + 1)]
    drawn = draw.choices(words, weights, k=2_400_000)
    lines = (" ".join(drawn[start:start + 20]) for start in range(0, len(drawn), 20))
    (bench.work / "text.txt").write_text("\n".join(lines) + "\n")
    for name, size in [("small", 2000), ("paper", 30_000)]:
        bench.must("prepare", "text.txt", "--documents", "lines", "--vocab-size", size, "--out", name)
        bench.must("classes", name)


def same_bits(bench, steps):
    """1, 2 and 4 ranks with the same batch in four shards."""
    for precision in ["f32", "bf16"]:
        for name, model, count in [("small", SMALL, steps), ("paper", PAPER, 10)]:
            common = [name, *model, "--set", "batch.shards=4", "--precision", precision, "--steps", count]
            results, losses = {}, {}
            for ranks in [1, 2, 4]:
                run = bench.work / f"{name}-{precision}-{ranks}"
                if bench.train(ranks, *common, "--out", run):
                    results[ranks] = digest(run)
                    losses[ranks] = [step["loss"] for step in steps_of(run)]
                # Checkpoints of the paper's model take a gigabyte each.
                if name == "paper":
                    shutil.rmtree(run, ignore_errors=True)
            words = f"{name} model, {precision}, {count} steps: 1, 2 and 4 ranks end in the same bits"
            bench.check(len(results) == 3 and len(set(results.values())) == 1, f"{words}: {results}")
            one = losses.get(1, [])
            gaps = [
                max(abs(a - b) for a, b in zip(one, other, strict=True))
                for ranks, other in losses.items() if ranks > 1 and len(other) == len(one) > 0
            ]
            bench.check(len(gaps) == 2 and max(gaps) <= 1e-3, f"  their losses differ by {gaps}")


def reference(bench, steps):
    """The small model in f32, trained by one rank, unless `same_bits` has trained it."""
    run = bench.work / "small-f32-1"
    if not run.exists():
        bench.must("train", "small", *SMALL, "--set", "batch.shards=4", "--precision", "f32", "--steps", steps,
                   "--device", "cuda:0", "--threads", "4", "--out", run)
    return run


def overhead(bench, rounds, steps):
    """One rank with the code for several ranks against training without ranks, in alternating runs; and a batch in four
    shards against the same four micro-batches in one shard, for which no limit is checked."""
    print("\n| model | without, ms | with, ms | slower |\n|---|--:|--:|--:|", flush=True)
    for name, model, rows in [("small", SMALL, 16), ("paper", PAPER, 8)]:
        one = ["--device", "cuda:0", "--set", "batch.shards=1"]
        micro = ["--set", f"batch.micro={rows // 4}"]
        several = ["--device", "cuda:0", "--set", "batch.shards=4"]
        pairs = [
            (f"{name}, one rank", one, ["--gpus", "1", "--set", "batch.shards=1"], 1),
            (f"{name}, four shards", [*one, *micro], [*several, *micro], None),
        ]
        common = [name, *model, "--set", "evaluation.every_steps=0", "--steps", steps]
        for words, without, parallel, limit in pairs:
            medians = ([], [])
            for _ in range(rounds):
                for flags, found in zip((without, parallel), medians):
                    run = bench.work / "speed"
                    code, _, error, _ = bench.f2("train", *common, *flags, "--out", run)
                    if code != 0:
                        bench.check(False, f"{words}, {flags}: ended with {code}: {error[-1000:]}")
                        return
                    times = [step["step_seconds"] for step in steps_of(run)][steps // 4:]
                    found.append(1000 * statistics.median(times))
                    shutil.rmtree(run)
            before, after = map(statistics.median, medians)
            slower = 100 * (after / before - 1)
            print(f"| {words} | {before:.3f} | {after:.3f} | {slower:+.2f} % |", flush=True)
            print(f"  all rounds: {medians}", flush=True)
            if limit is not None:
                bench.check(slower <= limit, f"{words}: {slower:+.2f} %, at most {limit} %")


def overlapping(bench, rounds, steps):
    """Gradients sent during the backward pass and after it, in alternating runs: times, which are not checked where
    ranks share a GPU, and bits, which must be equal, also where ranks differ in it. Two micro-batches to a shard:
    only the last backward pass may send."""
    print("\n| ranks | after it, ms | during it, ms | faster |\n|---|--:|--:|--:|", flush=True)
    for ranks in [2, 4]:
        common = ["paper", *PAPER, "--steps", steps, "--set", f"batch.shards={ranks}"]
        common += ["--set", f"batch.micro={8 // ranks // 2}"]
        # The last one differs between the ranks.
        cases = {"after": [0] * ranks, "during": [1] * ranks, "mixed": [1] + [0] * (ranks - 1)}
        times, bits = {name: [] for name in cases}, set()
        for turn in range(rounds):
            for name, overlap in cases.items():
                run = bench.work / f"overlap-{name}"
                if name == "mixed" and turn > 0:
                    continue
                if not bench.train(ranks, *common, "--out", run, overlap=overlap):
                    bench.check(False, f"{ranks} ranks, gradients sent {name} the backward pass")
                    return
                seconds = [step["step_seconds"] for step in steps_of(run)][steps // 4:]
                times[name].append(1000 * statistics.median(seconds))
                bits.add(digest(run))
                shutil.rmtree(run)
        after, during = (statistics.median(times[name]) for name in ("after", "during"))
        print(f"| {ranks} | {after:.3f} | {during:.3f} | {100 * (1 - during / after):+.1f} % |", flush=True)
        print(f"  all rounds: {times}", flush=True)
        print(f"  {'overlap shortens the step' if during < after else 'no gain from overlap here'}", flush=True)
        bench.check(len(bits) == 1, f"{ranks} ranks end in the same bits whenever gradients are sent: {bits}")


def killed_and_resumed(bench, steps):
    """kill -9 of one of two ranks; the run is then resumed by four."""
    common = ["small", *SMALL, "--set", "batch.shards=4", "--set", "checkpoint.every_steps=10"]
    run, whole = bench.work / "killed", bench.work / "whole"
    # Long enough that no rank finishes before the kill.
    steps = max(steps, 400)
    ranks = bench.ranks(2, *common, "--steps", steps, "--out", run)
    began = time.monotonic()
    while time.monotonic() - began < 60 and len(steps_of(run)) < 25:
        if any(rank.poll() is not None for rank in ranks):
            break
        time.sleep(0.05)
    reached = len(steps_of(run))
    ranks[1].send_signal(signal.SIGKILL)
    began = time.monotonic()
    code, _, error = finish(ranks[0], 60)
    seconds = time.monotonic() - began
    finish(ranks[1], 5)
    bench.check(reached >= 25, f"two ranks made {reached} steps before one was killed")
    bench.check(code == 4, f"the other rank ended {seconds:.1f} s after the kill, with code {code}")
    bench.check("rank 1" in error, f"its error names the rank: {error.strip().splitlines()[-2:]}")
    resumed = bench.train(4, "--resume", run)
    alone = bench.train(1, *common, "--steps", steps, "--out", whole)
    equal = resumed and alone and digest(run) == digest(whole)
    bench.check(equal, f"resumed by four ranks it ends in the bits of one that was never killed, {steps} steps")


def children_of(process):
    """The child processes of a process."""
    try:
        return [int(pid) for pid in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()]
    except FileNotFoundError:
        return []


def is_running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def by_itself(bench, steps):
    """`--gpus` without a launcher: identical results, and the effects of a signal to the parent or to a child."""
    common = ["train", "small", *SMALL, "--set", "batch.shards=4", "--precision", "f32"]
    whole = digest(reference(bench, steps))
    for gpus in [2, 4]:
        run = bench.work / f"children-{gpus}"
        code, _, error, _ = bench.f2(
            *common, "--steps", steps, "--out", run, "--gpus", gpus, F2_SHARE_GPU="1"
        )
        equal = code == 0 and digest(run) == whole
        bench.check(equal, f"`--gpus {gpus}` ended with {code} in the bits of one rank: {error[-500:]}")
    common += ["--set", "checkpoint.every_steps=10", "--steps", "4000", "--gpus", "3"]
    for name, code in [("INT", 130), ("TERM", 130), ("KILL", -9), ("KILL of a child", 4)]:
        run = bench.work / f"signal-{name.replace(' ', '-')}"
        parent = bench.start(*common, "--out", run, F2_SHARE_GPU="1")
        began = time.monotonic()
        while time.monotonic() - began < 60 and len(steps_of(run)) < 25 and parent.poll() is None:
            time.sleep(0.05)
        children = children_of(parent)
        word, _, of_child = name.partition(" ")
        os.kill(children[-1] if of_child else parent.pid, getattr(signal, f"SIG{word}"))
        began = time.monotonic()
        found, _, error = finish(parent, 60)
        while time.monotonic() - began < 60 and any(map(is_running, children)):
            time.sleep(0.05)
        seconds = time.monotonic() - began
        left = sum(map(is_running, children))
        words = f"SIG{name}: {len(children)} children, ended with {found} in {seconds:.1f} s, {left} still run"
        bench.check(found == code and len(children) == 2 and left == 0, words)
        print(f"  it said: {error.strip().splitlines()[-3:]}", flush=True)
        lines = [line for line in error.splitlines() if line.startswith("error: ")]
        bench.check(len(lines) == (0 if code == -9 else 1), f"  with {len(lines)} errors")
        resumed = bench.f2("train", "--resume", run, "--steps", "60", "--allow", "budget", "--device", "cuda:0")
        # The last checkpoint may be past the new limit.
        bench.check(resumed[0] == 0, f"  and the run resumes with {resumed[0]}: {resumed[2].strip()[-200:]}")


def shared_work(bench, steps):
    """Texts and perplexity with the code for several GPUs."""
    run = reference(bench, steps)
    for words in [
        ["generate", run, "--corpus", "small", "--protocol", "paper", "--streams", "300", "--out", "texts"],
        ["perplexity", run, "small", "--json"],
    ]:
        results = []
        for flags in [["--device", "cuda:0"], ["--gpus", "1"], ["--gpus", "all"], ["--gpus", "3"]]:
            code, output, error, _ = bench.f2(*words, *flags, F2_SHARE_GPU="1")
            texts = bench.work / "texts"
            results.append((code, (texts.read_text() if words[0] == "generate" and texts.exists() else output)))
            if code != 0:
                print(f"  {error[-1000:]}", flush=True)
        equal = all(result == results[0] for result in results) and results[0][0] == 0
        bench.check(equal, f"`f2 {words[0]} --gpus` gives the bytes of one GPU")


def refused(bench, steps):
    """The error for more GPUs than there are."""
    gpus = len(json.loads(bench.must("doctor", "--json"))["cuda"]["devices"])
    for words in [
        ["train", "small", *SMALL, "--steps", "5", "--out", "never"],
        ["generate", reference(bench, steps), "--prompt", "ka"],
        ["perplexity", reference(bench, steps), "small"],
        ["reproduce", "text.txt", "--out", "never"],
    ]:
        code, _, error, seconds = bench.f2(*words, "--gpus", str(gpus + 1), limit=60)
        said = error.strip().splitlines()[:1]
        holds = code == 4 and str(gpus + 1) in error and not (bench.work / "never").exists()
        bench.check(holds, f"`f2 {words[0]} --gpus {gpus + 1}` ended with {code} in {seconds:.1f} s: {said}")


PARTS = {
    "bits": lambda bench, a: same_bits(bench, a.steps),
    "one-rank": lambda bench, a: overhead(bench, a.rounds, a.speed_steps),
    "overlap": lambda bench, a: overlapping(bench, a.rounds, a.overlap_steps),
    "killed": lambda bench, a: killed_and_resumed(bench, a.steps),
    "gpus": lambda bench, a: by_itself(bench, a.steps),
    "generate": lambda bench, a: shared_work(bench, a.steps),
    "refused": lambda bench, a: refused(bench, a.steps),
}


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("program", type=Path)
    arguments.add_argument("--work", type=Path, default=Path("parallel-bench"))
    arguments.add_argument("--steps", type=int, default=50)
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--speed-steps", type=int, default=200)
    arguments.add_argument("--overlap-steps", type=int, default=40)
    arguments.add_argument("--only", nargs="+", choices=PARTS, help="these parts instead of all")
    a = arguments.parse_args()
    shutil.rmtree(a.work, ignore_errors=True)
    a.work.mkdir(parents=True)
    bench = Bench(a.program.resolve(), a.work.resolve())
    print(bench.must("doctor"), flush=True)
    write_corpus(bench)
    for name in a.only or PARTS:
        began = time.monotonic()
        print(f"\n== {name}", flush=True)
        PARTS[name](bench, a)
        print(f"({name}: {time.monotonic() - began:.0f} s)", flush=True)
    print(f"\n{bench.check.failed} checks did not hold" if bench.check.failed else "\nall checks hold")
    sys.exit(bool(bench.check.failed))


if __name__ == "__main__":
    main()
