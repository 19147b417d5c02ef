"""Transfer learning: pretrain on one corpus, fine-tune on another with F², against training from
scratch with the same fine-tuning budget.

    cargo build --release
    python bench/transfer.py --pretrain wiki-ko/train-00.txt.zst --out transfer --seeds 0 1 2 \\
        --train nsmc/train.txt.zst --valid nsmc/valid.txt.zst --test nsmc/test.txt.zst

Every command is printed before it runs; existing results are reused. The tokenizer is learned from the first corpus and
kept for the second, so all perplexities are over the same tokens. There is one pretrained model; a seed determines the
order of the second corpus, dropout, and the randomly drawn weights. Ends with a Markdown table of the validation
perplexity after the same number of steps on the second corpus, its mean over the seeds, and the paper's values (test
perplexity on its lyrics, 430,837 songs).

A complete run of about a minute, as a test:

    python bench/transfer.py ... --out tiny --vocabulary 500 --steps 5 --pretrain-budget "--steps 5" \\
        --settings model.layers=1 model.width=16 batch.size=2
"""

import argparse
import json
import shlex
import statistics
import subprocess
from pathlib import Path

PAPER = {"from scratch": 13.2, "transferred": 9.8}


def run(program, *arguments):
    command = [program, *map(str, arguments)]
    print("$ " + shlex.join(command), flush=True)
    subprocess.run(command, check=True, stdout=subprocess.PIPE)


def events_of(out, kind):
    events = map(json.loads, (out / "events.jsonl").read_text().splitlines())
    return [event for event in events if event["event"] == kind]


def trained(program, out, corpus, *arguments):
    """Trains, or resumes an interrupted run; returns the last validation perplexity, the number of steps and
    of tokens seen."""
    if not out.exists():
        run(program, "train", corpus, "--out", out, *arguments)
    elif not any(event["complete"] for event in events_of(out, "ended")):
        run(program, "train", corpus, "--resume", out)
    steps = events_of(out, "step")
    return events_of(out, "evaluated")[-1]["perplexity"], steps[-1]["step"], steps[-1]["tokens"]


def row(name, runs):
    perplexities = [perplexity for perplexity, _, _ in runs]
    _, steps, tokens = runs[0]
    each = ", ".join(f"{perplexity:.2f}" for perplexity in perplexities)
    mean = statistics.mean(perplexities)
    return f"| {name} | {steps} | {tokens} | {mean:.2f} | {each} | {PAPER.get(name, '')} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ["pretrain", "train", "valid", "test", "out"]:
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--f2", default="target/release/f2")
    parser.add_argument("--vocabulary", type=int, default=4096)
    parser.add_argument("--pretrain-budget", default="--max-minutes 15", help="flags that limit the pretraining")
    parser.add_argument("--steps", type=int, default=500, help="of fine-tuning, and of training from scratch")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0], help="of fine-tuning and training from scratch")
    parser.add_argument("--settings", nargs="+", default=[], metavar="KEY=VALUE", help="of all models")
    options = parser.parse_args()
    f2, out = options.f2, options.out
    first, second, pretrained = out / "first", out / "second", out / "pretrained"
    if not first.exists():
        run(f2, "prepare", options.pretrain, "--split", "0.98,0.01,0.01", "--vocab-size", options.vocabulary, "--out", first)
    if not second.exists():
        texts = ["--train", options.train, "--valid", options.valid, "--test", options.test]
        run(f2, "prepare", *texts, "--tokenizer", first / "tokenizer.json", "--out", second)
    if not (second / "classes.json").exists():
        run(f2, "classes", second)
    settings = ["--preset", "demo", "--set", "evaluation.every_steps=0"]
    for setting in options.settings:
        settings += ["--set", setting]
    before = trained(f2, pretrained, first, "--objective", "mle", *settings, *options.pretrain_budget.split())
    ways = {
        "from scratch": [],
        "transferred": ["--init", pretrained],
        "transferred, classes from the mean of their tokens": ["--init", pretrained, "--set", "initial.class_vectors=mean"],
    }
    folders = dict(zip(ways, ["scratch", "transferred", "transferred-mean"]))
    rows = {way: [] for way in ways}
    for seed in options.seeds:
        for way, flags in ways.items():
            budget = ["--objective", "f2", "--steps", options.steps, "--seed", seed]
            folder = out / f"{folders[way]}-{seed}"
            rows[way].append(trained(f2, folder, second, *settings, *budget, *flags))
    print(f"\npretrained: {before[1]} steps, {before[2]} tokens, perplexity {before[0]:.1f} on its own corpus\n")
    print("| F² model | steps | tokens | validation perplexity | of each seed | paper |\n|---|--:|--:|--:|---|--:|")
    for way, runs in rows.items():
        print(row(way, runs))


if __name__ == "__main__":
    main()
