"""Plain softmax and F² on pairs: trains both, generates targets for the test sources, and scores them.

    cargo build --release
    python bench/pairs.py target/release/f2 pairs.jsonl --steps 3000 --work pairs-work
    python bench/pairs.py target/release/f2 pairs.jsonl --preset wikitext103 --device cuda --work pairs-work

Both models see the same text in the same order. Each is decoded with every --k (1 is greedy). The tuned k of a model is
the one whose texts on the validation split have a number of different tokens closest to that of the references. Prints
a Markdown table; results that already exist in --work are reused. `make_pairs.py` makes pairs from articles.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

OBJECTIVES = {"mle": "MLE", "f2": "F²"}


class Study:
    def __init__(self, arguments):
        self.arguments = arguments
        self.work = arguments.work
        self.work.mkdir(parents=True, exist_ok=True)

    def f2(self, *words):
        command = [str(self.arguments.program), *map(str, words)]
        print("$ f2", *command[1:], file=sys.stderr)
        return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout

    def once(self, path, *words):
        if not path.exists():
            self.f2(*words)
        return path

    @property
    def device(self):
        return ["--device", self.arguments.device]

    def train(self):
        a = self.arguments
        corpus = self.work / "corpus"
        self.once(corpus, "prepare", *a.pairs, "--pairs", "--vocab-size", a.vocab, "--out", corpus)
        self.once(corpus / "classes.json", "classes", corpus)
        settings = [word for setting in a.set for word in ("--set", setting)]
        for objective in OBJECTIVES:
            run = self.work / objective
            words = ["--preset", a.preset, "--objective", objective, "--steps", a.steps, "--seed", a.seed]
            self.once(run, "train", corpus, *words, *settings, *self.device, "--out", run)

    def write(self, objective, k, split):
        """The targets that a model generates for the sources of a split, and the references."""
        out = self.work / f"{objective}-{split}-k{k}.jsonl"
        strategy = ["--greedy"] if k == 1 else ["--top-k", k]
        protocol = ["--corpus", self.work / "corpus", "--protocol", "pairs", "--split", split]
        files = ["--out", out, "--references", self.work / f"human-{split}.jsonl"]
        self.once(out, "generate", self.work / objective, *protocol, *strategy, *self.device, *files)
        return out, self.work / f"human-{split}.jsonl"

    def scores(self, texts, references):
        files = ["--hyps", texts, "--refs", references, "--json"]
        return json.loads(self.f2("eval", "--pairs", *files)), json.loads(self.f2("eval", *files))

    def tuned(self, objective):
        def distance(k):
            texts, references = self.write(objective, k, "valid")
            diversity = json.loads(self.f2("eval", "--hyps", texts, "--refs", references, "--json"))
            return abs(diversity["uniq"] - diversity["human"]["uniq"])

        return min(self.arguments.k, key=distance)

    def table(self):
        columns = ["", "k", "PPL", "BLEU", "chrF", "R-1", "R-2", "R-L", "D2", "SB2", "Uniq"]
        print("| " + " | ".join(columns) + " |\n|---" + "|--:" * (len(columns) - 1) + "|")
        for objective, name in OBJECTIVES.items():
            words = ["perplexity", self.work / objective, self.work / "corpus", *self.device, "--json"]
            perplexity = json.loads(self.f2(*words))["token_perplexity"]
            tuned = self.tuned(objective)
            for k in self.arguments.k:
                pairs, diversity = self.scores(*self.write(objective, k, "test"))
                shown = f"{k}, tuned" if k == tuned else str(k)
                self.row(name, shown, f"{perplexity:.2f}", pairs, diversity)
        self.row("Human", "", "", None, diversity["human"])

    def row(self, name, k, perplexity, pairs, diversity):
        names = ["bleu", "chrf", "rouge_1", "rouge_2", "rouge_l"]
        quality = [f"{100 * pairs[each]:.2f}" for each in names] if pairs else [""] * len(names)
        orders = [f"{100 * diversity[each][1]:.1f}" for each in ["distinct", "self_bleu"]]
        print("| " + " | ".join([name, k, perplexity, *quality, *orders, str(diversity["uniq"])]) + " |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=Path)
    parser.add_argument("pairs", type=Path, nargs="+")
    parser.add_argument("--work", type=Path, default=Path("pairs-work"))
    parser.add_argument("--preset", default="demo")
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--vocab", type=int, default=8000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--k", type=int, nargs="+", default=[1, 3, 10, 20, 50, 100])
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--device", default="cpu")
    arguments = parser.parse_args()
    arguments.program = arguments.program.resolve()
    study = Study(arguments)
    study.train()
    study.table()


main()
