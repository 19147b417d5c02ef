"""Study of frequency classes: the distance to human text by method, number of classes and seed, and its causes.

    f2 demo --out demo --steps 1        # prepares the built-in text
    python bench/classes.py target/release/f2 demo/stages/prepare-*/corpus greedy:6,own,24,48,96,192 \\
        exact:6,own,24,48,96 equal-tokens:6,24,48,96 --seeds 1 2 3 --trials 24 --reach 192

A setting is a method of `f2 classes` and numbers of classes; `own` stands for the number that the method chooses. Each
model is trained like the demo's F² model (crates/f2-experiment/plans/demo.toml), once for each seed, and tuned by
`f2 tune --trials`. Texts continue 256 prefixes of the test split; the texts, halves and search of `f2 tune` use one
seed for all models, so that distances have the same unit. With --reach every model also generates with the k for which
the number of tokens that can be drawn at any position is closest to the given one. Results are kept in --out: an
interrupted command continues from there.

Prints properties of the classes, mean ± standard deviation over the seeds of the metrics of the texts, and rank
correlations (Spearman) of the distances with the properties of the classes. If two methods give the same classes, they
are trained once.
"""

import argparse
import json
import shutil
import statistics
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

K_UNTUNED = 3
PLAN = ["--objective", "f2", "--preset", "demo", "--set", "batch.sequence=160", "--set", "batch.size=12"]
# Of the classes: heading, key, digits.
TRAITS = [
    ("K", "k", 0),
    ("evenness of classes", "class_efficiency", 4),
    ("evenness in classes", "token_efficiency", 4),
    ("MefMax objective", "objective", 4),
    ("largest mass, %", "largest_mass", 1),
    (f"in reach, k = {K_UNTUNED}", "reach", 0),
    ("their mass, %", "reach_mass", 1),
]
# Of the texts: heading, key, digits.
COLUMNS = [
    ("PPL", "perplexity", 1),
    ("KLD", "kld", 2),
    ("MSJ1", "msj1", 1),
    ("MSJ2", "msj2", 1),
    ("MSJ3", "msj3", 1),
    ("Uniq", "uniq", 0),
    ("distance, k = 3", "untuned", 1),
    ("distance, tuned", "tuned", 1),
]


def call(a, *words, output=None):
    """Runs the program and returns its output, parsed as JSON; caches it in the file `output` if given."""
    if output and output.exists():
        return json.loads(output.read_text())
    done = subprocess.run([a.program, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f"f2 {' '.join(map(str, words))}: {done.stderr[-2000:]}")
    if output:
        partial = output.with_name(f".{output.name}.partial")
        partial.write_text(done.stdout)
        partial.replace(output)
    return json.loads(done.stdout) if done.stdout else None


def in_reach(sizes, k):
    return sum(min(k, size) for size in sizes)


def k_of_reach(sizes, reach):
    """The k for which the number of tokens in reach is closest to `reach`."""
    return min(range(1, reach + 1), key=lambda k: (abs(in_reach(sizes, k) - reach), k))


def make_classes(a, counts, method, number):
    name = f"{method}-{number}"
    options = [] if number == "own" else ["--k", number]
    file = a.out / f"{name}.classes.json"
    found = call(a, "classes", a.corpus, "--method", method, *options, "--out", file, "--json")
    parts = found["classes"]
    sizes = [part["tokens"] for part in parts]
    likeliest = sum(sum(counts[part["start"] : min(part["end"], part["start"] + K_UNTUNED)]) for part in parts)
    traits = {key: found[key] for key in ("k", "class_efficiency", "objective")}
    traits["token_efficiency"] = statistics.mean(part["efficiency"] for part in parts)
    traits["largest_mass"] = 100 * max(part["mass"] for part in parts)
    traits["reach"] = in_reach(sizes, K_UNTUNED)
    traits["reach_mass"] = 100 * likeliest / sum(counts)
    title = f"{method}, its own K" if number == "own" else method
    return dict(name=name, title=title, file=file, ends=found["ends"], sizes=sizes, traits=traits)


def train(a, classes, seed, folder):
    run, trained = folder / "run", folder / "trained.json"
    if not trained.exists():
        shutil.rmtree(run, ignore_errors=True)
    where = ["--threads", a.threads, "--device", a.device] if a.threads else ["--device", a.device]
    words = ["train", a.corpus, "--out", run, "--classes", classes["file"], *PLAN, "--steps", a.steps, "--seed", seed]
    call(a, *words, *where, "--json", output=trained)
    return run, where


def measure(a, classes, seed):
    """The values of one model."""
    folder = a.out / f"{classes['name']}-steps-{a.steps}-seed-{seed}"
    folder.mkdir(exist_ok=True)
    run, where = train(a, classes, seed, folder)
    perplexity = call(a, "perplexity", run, a.corpus, *where, "--json", output=folder / "perplexity.json")
    words = ["tune", run, "--corpus", a.corpus, "--trials", a.trials, "--out", folder / "tuned", *where]
    test = call(a, *words, "--json", output=folder / f"tune-{a.trials}.json")["test"]
    found = texts_of(test["untuned"]["metrics"])
    found |= dict(perplexity=perplexity["token_perplexity"])
    found |= dict(untuned=test["untuned"]["distance"], tuned=test["tuned"]["distance"])
    if a.reach:
        k = k_of_reach(classes["sizes"], a.reach)
        found["reached"] = reach(a, run, folder, k, where) | dict(k=k, reach=in_reach(classes["sizes"], k))
    print(f"{folder.name}: distance {found['untuned']:.2f}, tuned {found['tuned']:.2f}", file=sys.stderr, flush=True)
    return found


def texts_of(metrics):
    shares = {f"msj{order}": 100 * share for order, share in enumerate(metrics["ms_jaccard"], 1)}
    return dict(kld=metrics["kld"], uniq=metrics["uniq"], sb2=100 * metrics["self_bleu"][1], **shares)


def reach(a, run, folder, k, where):
    texts, references, scores = folder / f"top-{k}.jsonl", folder / "human.jsonl", folder / f"top-{k}.scores.json"
    if not scores.exists():
        words = ["generate", run, "--corpus", a.corpus, "--protocol", "paper", "--decoding", "none", "--top-k", k]
        words = [str(word) for word in [a.program, *words, "--out", texts, "--references", references, *where]]
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return texts_of(call(a, "eval", "--hyps", texts, "--refs", references, "--json", output=scores))


def spread(values, digits):
    mean = f"{statistics.mean(values):.{digits}f}"
    return f"{mean} ± {statistics.stdev(values):.{digits}f}" if len(values) > 1 else mean


def markdown(head, rows, left=1):
    print("| " + " | ".join(head) + " |")
    print("|" + "---|" * left + "--:|" * (len(head) - left))
    for cells in rows:
        print("| " + " | ".join(cells) + " |")
    print()


def ranks(values):
    """Ranks from 1; equal values have their mean rank."""
    ordered = sorted(values)
    return [ordered.index(value) + (ordered.count(value) + 1) / 2 for value in values]


def spearman(left, right):
    left, right = ranks(left), ranks(right)
    if len(set(left)) < 2 or len(set(right)) < 2:
        return None
    return statistics.correlation(left, right)


def correlations(settings, results):
    """Rank correlations of mean distances with each property: untuned over all settings and at equal K, and tuned."""
    untuned, tuned = ({name: statistics.mean(found[key] for found in results[name]) for name in settings} for key in ("untuned", "tuned"))
    groups = {}
    for name, classes in settings.items():
        groups.setdefault(classes["traits"]["k"], []).append(name)
    groups = [group for group in groups.values() if len(group) > 2]
    for heading, key, _ in TRAITS:
        value = {name: classes["traits"][key] for name, classes in settings.items()}
        equal = [spearman([value[name] for name in group], [untuned[name] for name in group]) for group in groups]
        equal = [found for found in equal if found is not None]
        over_all = [spearman(list(value.values()), list(distance.values())) for distance in (untuned, tuned)]
        found = [over_all[0], statistics.mean(equal) if equal else None, over_all[1]]
        yield [heading, *("–" if number is None else f"{number:+.2f}" for number in found)]


def show(a, settings, results):
    markdown(
        ["method", *(heading for heading, *_ in TRAITS)],
        [[c["title"], *(f"{c['traits'][key]:.{digits}f}" for _, key, digits in TRAITS)] for c in settings.values()],
    )
    rows = []
    for name, classes in settings.items():
        cells = [spread([found[key] for found in results[name]], digits) for _, key, digits in COLUMNS]
        rows.append([classes["title"], str(classes["traits"]["k"]), *cells])
    markdown(["method", "K", *(heading for heading, *_ in COLUMNS)], rows)
    if a.reach:
        rows = []
        for name, classes in settings.items():
            found = [result["reached"] for result in results[name]]
            cells = [spread([one[key] for one in found], digits) for _, key, digits in COLUMNS[1:6]]
            cells.append(spread([one["sb2"] for one in found], 1))
            rows.append([classes["title"], str(classes["traits"]["k"]), str(found[0]["k"]), str(found[0]["reach"]), *cells])
        markdown(["method", "K", "k", "in reach", *(heading for heading, *_ in COLUMNS[1:6]), "SB2"], rows)
    even = {name: classes for name, classes in settings.items() if "equal-tokens" not in classes["title"]}
    for title, chosen in [("all settings", settings), ("without equal-tokens", even)]:
        if len(chosen) > 2 and (chosen is settings or len(even) < len(settings)):
            head = [f"rank correlation, {title}", "distance, k = 3", "the same at equal K, mean", "distance, tuned"]
            markdown(head, list(correlations(chosen, results)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=Path)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("settings", nargs="+", metavar="METHOD:K,K,…")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--trials", type=int, default=24, help="settings of decoding that f2 tune may try")
    parser.add_argument("--reach", type=int, default=0, help="also write with about this many tokens in reach")
    parser.add_argument("--out", type=Path, default=Path("classes-study"))
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=0, help="threads of each f2; all cores if not given")
    parser.add_argument("--jobs", type=int, default=1, help="models worked on at a time")
    a = parser.parse_args()
    a.program = a.program.resolve()
    a.out.mkdir(parents=True, exist_ok=True)
    counts = json.loads((a.corpus / "counts.json").read_text())["counts"]
    settings, seen = {}, {}
    for method, numbers in (word.split(":") for word in a.settings):
        for number in numbers.split(","):
            classes = make_classes(a, counts, method, number)
            twin = seen.setdefault(tuple(classes["ends"]), classes)
            if twin is not classes:
                print(f"{classes['name']} is {twin['name']} again", file=sys.stderr)
                continue
            settings[classes["name"]] = classes
    # All settings of one seed before the next.
    work = [(name, seed) for seed in a.seeds for name in settings]
    with ThreadPoolExecutor(a.jobs) as pool:
        found = list(pool.map(lambda one: measure(a, settings[one[0]], one[1]), work))
    results = {name: [value for (other, _), value in zip(work, found) if other == name] for name in settings}
    show(a, settings, results)


if __name__ == "__main__":
    main()
