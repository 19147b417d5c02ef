"""Models of the paper's size: a plain one and F² with several seeds, their decoding tuned, and deterministic decoding
compared with sampling, as docs/tune.md and docs/beyond.md do it with the models of `f2 demo`.

    cargo build --release
    python bench/beyond.py target/release/f2 --train train-00.txt.zst --valid valid.txt.zst --test test.txt.zst

Needs a GPU and about a quarter of an hour. The plain model and the first F² model are trained for --minutes each, with
nothing else on the GPU; the other seeds for as many steps as the first, while finished models are tuned. Prints the
table of `bench/tune.py` and that of `bench/deterministic.py`. What exists in --work is used again. With `--preset demo
--vocab 2000 --minutes 0.2 --budget 0.1 --texts 64 --device cpu` it tries the whole on a small text.
"""

import argparse
import json
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
SETTINGS = [
    *("batch.size=16", "batch.order=shuffled", "schedule.shape=cosine", "schedule.warmup_steps=300"),
    *("optimiser.learning_rate=6e-4", "optimiser.clip=1.0", "optimiser.beta2=0.99", "optimiser.weight_decay=0.1"),
    *("model.residual_scaling=true", "evaluation.every_steps=0"),
    *("checkpoint.every_minutes=0", "checkpoint.every_steps=0"),
]


class Study:
    def __init__(self, a):
        self.a, self.work, self.program = a, a.work.resolve(), a.program.resolve()
        self.work.mkdir(parents=True, exist_ok=True)
        self.began = time.monotonic()

    def call(self, *words, output=None):
        """Runs a command in the folder of the study. Its output goes to a file, which is complete if it exists."""
        words = [str(word) for word in words]
        if output and (self.work / output).exists():
            return
        print(f"{time.monotonic() - self.began:6.0f} s: {' '.join(words)}", file=sys.stderr, flush=True)
        name = words[-1] if not output else output
        with open(self.work / f"{Path(name).name}.log", "w") as log:
            done = subprocess.run(words, cwd=self.work, stdout=subprocess.PIPE, stderr=log)
        if done.returncode:
            sys.exit(f"{' '.join(words)} ended with {done.returncode}: see {log.name}")
        if output:
            (self.work / output).write_bytes(done.stdout)

    def f2(self, *words, output=None):
        self.call(self.program, *words, output=output)

    def prepare(self):
        a = self.a
        files = []
        for name in ("train", "valid", "test"):
            files += [f"--{name}", Path(getattr(a, name)).resolve()]
        if not (self.work / "corpus").exists():
            self.f2("prepare", *files, "--vocab-size", a.vocab, "--out", "corpus")
            self.f2("classes", "corpus")

    def train(self, objective, seed, limit):
        """Trains a model and returns its folder and number of steps."""
        run = f"{objective}-{seed}"
        if not (self.work / run).exists():
            settings = [word for setting in SETTINGS + self.a.set for word in ("--set", setting)]
            flags = ["--preset", self.a.preset, "--objective", objective, "--seed", seed, "--device", self.a.device]
            self.f2("train", "corpus", *flags, *settings, *limit, "--out", run)
        newest = max((self.work / run / "checkpoints").glob("step-*"), key=lambda path: int(path.name[5:]))
        return run, int(newest.name[5:])

    def tune(self, run):
        device = ["--device", self.a.device]
        self.f2("perplexity", run, "corpus", *device, "--json", output=f"{run}.perplexity.json")
        self.f2("tune", run, "--corpus", "corpus", "--budget", self.a.budget, *device, "--json", output=f"{run}.json")

    def compare(self, run):
        flags = ["--device", self.a.device, "--texts", self.a.texts, "--ks", 3, 10, 20, "--seeds", 2, "--out", "texts"]
        script = [sys.executable, HERE / "deterministic.py", self.program, run, "corpus", *flags]
        self.call(*script, output="deterministic.md")

    def run(self):
        self.prepare()
        minutes = ["--max-minutes", self.a.minutes]
        plain, _ = self.train("mle", self.a.seeds[0], minutes)
        first, steps = self.train("f2", self.a.seeds[0], minutes)
        runs = [plain, first]
        with ThreadPoolExecutor(max_workers=1) as pool:
            tasks = [pool.submit(self.tune, run) for run in runs] + [pool.submit(self.compare, first)]
            for seed in self.a.seeds[1:]:
                runs.append(self.train("f2", seed, ["--steps", steps])[0])
                tasks.append(pool.submit(self.tune, runs[-1]))
            for task in tasks:
                task.result()
        for run in runs:
            found = json.loads((self.work / f"{run}.perplexity.json").read_text())
            print(f"{run}: perplexity {found['token_perplexity']:.2f} on the test split")
        records = [self.work / f"{run}.json" for run in runs]
        print(flush=True)
        subprocess.run([sys.executable, HERE / "tune.py", "--from", *records], check=True)
        print("\n" + (self.work / "deterministic.md").read_text())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=Path)
    for split in ("train", "valid", "test"):
        parser.add_argument(f"--{split}", required=True)
    parser.add_argument("--work", type=Path, default=Path("beyond"))
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--minutes", type=float, default=3.16667)
    parser.add_argument("--budget", type=float, default=2.0, help="minutes of search for each model")
    parser.add_argument("--texts", type=int, default=1792, help="texts of deterministic decoding")
    parser.add_argument("--preset", default="wikitext103")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--vocab", type=int, default=30_000)
    parser.add_argument("--device", default="cuda")
    Study(parser.parse_args()).run()


main()
