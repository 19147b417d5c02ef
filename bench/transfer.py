"""Transfer learning: pretrain on one corpus, fine-tune on another with F², against training from
scratch with the same fine-tuning budget.

    cargo build --release
    python bench/transfer.py --pretrain wiki-ko/train-00.txt.zst --out transfer \\
        --train nsmc/train.txt.zst --valid nsmc/valid.txt.zst --test nsmc/test.txt.zst

Every command is printed before it runs; what is there already is not done again. The tokenizer is
learnt from the first corpus and kept for the second, so all perplexities are over the same tokens.
Ends with a table in Markdown: the validation perplexity after the same number of steps on the
second corpus, and the paper's (test perplexity on its lyrics, 430,837 songs) beside.
"""

import argparse
import json
import shlex
import subprocess
from pathlib import Path

PAPER = {"from scratch": 13.2, "transferred": 9.8}


def run(program, *arguments):
    command = [program, *map(str, arguments)]
    print("$ " + shlex.join(command), flush=True)
    subprocess.run(command, check=True, stdout=subprocess.PIPE)


def trained(program, out, corpus, *arguments):
    """Trains unless it is done, and gives the last validation perplexity and the tokens seen."""
    if not list(out.glob("checkpoints/step-*")):
        run(program, "train", corpus, "--out", out, *arguments)
    events = [json.loads(line) for line in (out / "events.jsonl").read_text().splitlines()]
    evaluated = [event for event in events if event["event"] == "evaluated"]
    steps = [event for event in events if event["event"] == "step"]
    return evaluated[-1]["perplexity"], steps[-1]["step"], steps[-1]["tokens"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ["pretrain", "train", "valid", "test", "out"]:
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--f2", default="target/release/f2")
    parser.add_argument("--vocabulary", type=int, default=4096)
    parser.add_argument("--pretrain-budget", default="--max-minutes 15", help="flags that limit the pretraining")
    parser.add_argument("--steps", type=int, default=500, help="of fine-tuning, and of training from scratch")
    options = parser.parse_args()
    f2, out = options.f2, options.out
    first, second, pretrained = out / "first", out / "second", out / "pretrained"
    if not first.exists():
        run(f2, "prepare", options.pretrain, "--split", "0.98,0.01,0.01", "--vocab-size", options.vocabulary, "--out", first)
    if not second.exists():
        texts = ["--train", options.train, "--valid", options.valid, "--test", options.test]
        run(f2, "prepare", *texts, "--tokenizer", first / "tokenizer.json", "--out", second)
        run(f2, "classes", second)
    only_at_the_end = ["--set", "evaluation.every_steps=0"]
    before = trained(
        f2, pretrained, first, "--preset", "demo", "--objective", "mle", *options.pretrain_budget.split(), *only_at_the_end
    )
    budget = ["--objective", "f2", "--steps", options.steps, *only_at_the_end]
    rows = {
        "from scratch": trained(f2, out / "scratch", second, "--preset", "demo", *budget),
        "transferred": trained(f2, out / "transferred", second, "--init", pretrained, *budget),
        "transferred, classes from the mean of their tokens": trained(
            f2, out / "transferred-mean", second, "--init", pretrained, *budget, "--set", "initial.class_vectors=mean"
        ),
    }
    print(f"\npretrained: {before[1]} steps, {before[2]} tokens, perplexity {before[0]:.1f} on its own corpus\n")
    print("| F² model | steps | tokens | validation perplexity | paper |\n|---|--:|--:|--:|--:|")
    for name, (perplexity, steps, tokens) in rows.items():
        print(f"| {name} | {steps} | {tokens} | {perplexity:.2f} | {PAPER.get(name, '')} |")


if __name__ == "__main__":
    main()
