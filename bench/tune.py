"""Tunes the decoding of models and prints how much of the gap from maximum likelihood to human text each closes.

    python bench/tune.py target/release/f2 --mle RUN --f2 RUN … --corpus CORPUS [--budget MINUTES]

Runs `f2 tune` for one model after the other, each limited by --budget; a model that was tuned before continues from
there. The table is made from the test split only, which the search never sees. Values are computed on halves of the
texts, like the human ceiling: one half of the human texts against the other. The gap is measured from the plain model
with untuned decoding (top-k with the protocol's k). Further arguments, such as `--protocol lyrics` or
`--device cuda`, are passed to `f2 tune`. `--from FILE …` makes the table from earlier output of `f2 tune --json`,
that of the plain model first.
"""

import argparse
import json
import pathlib
import subprocess
import sys

# The metrics whose share of the gap is printed: heading, key and order.
COLUMNS = [
    ("KLD", "kld", None),
    ("MSJ1", "ms_jaccard", 0),
    ("MSJ2", "ms_jaccard", 1),
    ("MSJ3", "ms_jaccard", 2),
    ("D1", "distinct", 0),
    ("Uniq", "uniq", None),
]
# The metrics that should lie inside the bootstrap interval of human text.
INSIDE = [("SB1", "self_bleu", 0), ("SB2", "self_bleu", 1), ("SB3", "self_bleu", 2), ("Rep", "rep", None)]


def value(metrics, key, order):
    return metrics[key] if order is None else metrics[key][order]


def share(start, found, ceiling):
    """The share of the gap from `start` to `ceiling` that is closed; above 1 the value exceeds the ceiling."""
    return (start - found) / (start - ceiling) if start != ceiling else float("nan")


def tune(arguments, run, more):
    command = [arguments.program, "tune", run, "--corpus", arguments.corpus]
    command += ["--budget", str(arguments.budget), "--json", *more]
    print("$", " ".join(command), file=sys.stderr)
    return json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)


def row(name, tested, start, test):
    cells = [name, f"{tested['distance']:.2f}"]
    for _, key, order in COLUMNS:
        found = (value(part, key, order) for part in (start["halves"], tested["halves"], test["target"]))
        cells.append(f"{round(100 * share(*found))} %")
    for _, key, order in INSIDE:
        low, high = value(test["human"]["intervals"], key, order)
        found = value(tested["metrics"], key, order)
        where = "inside" if low <= found <= high else "above" if found > high else "below"
        cells.append(f"{100 * found:.1f} {where} {100 * low:.1f}–{100 * high:.1f}")
    return cells


def show(records):
    start = next(iter(records.values()))["test"]["untuned"]
    table = [["model", "distance", *(heading for heading, *_ in COLUMNS + INSIDE)]]
    for name, record in records.items():
        for decoding in ("untuned", "tuned"):
            table.append(row(f"{name}, {decoding}", record["test"][decoding], start, record["test"]))
    for number, cells in enumerate(table):
        print("| " + " | ".join(cells) + " |")
        if number == 0:
            print("|---" + "|--:" * (len(cells) - 1) + "|")
    print()
    for name, record in records.items():
        chosen = record["trials"][record["chosen"]]["decoding"]
        settings = ", ".join(f"{key} {number:g}" for key, number in chosen.items())
        print(f"- {name}: {len(record['trials'])} settings on {record['texts']} texts; chosen: {settings}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", nargs="?", help="f2")
    parser.add_argument("--mle", help="the plain model, whose untuned decoding is the start")
    parser.add_argument("--f2", nargs="+", default=[], help="models to set beside it")
    parser.add_argument("--corpus")
    parser.add_argument("--budget", type=float, default=5.0, help="minutes of search for each model")
    parser.add_argument("--from", dest="files", nargs="+", help="results of f2 tune --json")
    arguments, more = parser.parse_known_args()
    if arguments.files:
        records = {pathlib.Path(name).stem: json.loads(pathlib.Path(name).read_text()) for name in arguments.files}
    elif arguments.program and arguments.mle and arguments.corpus:
        runs = [arguments.mle, *arguments.f2]
        records = {pathlib.Path(run).resolve().name: tune(arguments, run, more) for run in runs}
    else:
        parser.error("give the program, --mle and --corpus, or --from")
    if any(record["test"] is None for record in records.values()):
        sys.exit("there is no test: the search was interrupted, or the test split holds too little text")
    show(records)


if __name__ == "__main__":
    main()
