"""Deterministic decoding compared with greedy, beam search, blocked n-grams, contrastive search, and sampling with the
same truncation.

    cargo build --release
    python bench/deterministic.py target/release/f2 RUN CORPUS --figure docs/images/deterministic.svg
    python bench/deterministic.py target/release/f2 RUN CORPUS --device cuda

continues the test prefixes of CORPUS with the model of RUN by each method, scores the texts with `f2 eval` against the
human continuations, and prints a Markdown table; values for sampling are means over seeds. Texts and scores are kept in
the folder --out. The figure plots KLD, MS-Jaccard-2 and Distinct-1 over k. With `--share F` the exit code is 1 if a
deterministic row has a Rep above 1 %, or a KLD or MS-Jaccard worse than sampling's by more than the share F.
"""

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path

COLUMNS = ["KLD", "MSJ1", "MSJ2", "MSJ3", "SB1", "SB2", "SB3", "D1", "D2", "D3", "Rep", "Uniq"]
COLOURS = {"sampling": "#888888", "deterministic": "#0072b2", "human": "#009e73"}


def truncations(ks, ps):
    return {f"k = {k}": [f"--top-k={k}"] for k in ks} | {f"p = {p}": [f"--top-p={p}"] for p in ps}


def ways(a):
    """The name of every decoding method, its flags, and the names of its files."""
    seeds = [str(seed) for seed in range(1, a.seeds + 1)]
    yield "greedy", ["--greedy"], ["greedy"]
    yield "beam of 4", ["--beam=4"], ["beam"]
    yield "greedy, no 3-gram twice", ["--greedy", "--block-ngrams=3"], ["blocked"]
    yield "contrastive search, k = 4, α = 0.6", ["--penalty-alpha=0.6", "--top-k=4"], ["contrastive"]
    for name, flags in truncations(a.ks, a.ps).items():
        file = name.replace(" ", "")
        yield f"sampling, {name}", flags, [f"sampling-{file}-{seed}" for seed in seeds]
        yield f"deterministic, {name}", [*flags, "--deterministic"], [f"deterministic-{file}"]


def generate(a, name, flags, references):
    out = a.out / f"{name}.jsonl"
    seed = [f"--seed={name.rsplit('-', 1)[1]}"] if name.startswith("sampling") else []
    command = [a.program, "generate", a.run, "--corpus", a.corpus, "--protocol", a.protocol]
    command += ["--decoding", "none", "--device", a.device, "--out", out, "--references", references, *flags, *seed]
    command += [f"--texts={a.texts}"] if a.texts else []
    print(f"{name} …", file=sys.stderr, flush=True)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    return out


def evaluate(a, texts, references):
    command = [a.program, "eval", "--hyps", *texts, "--refs", references, "--json"]
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE).stdout
    (a.out / "scores.json").write_bytes(output)
    return json.loads(output)


def row(scores):
    """The values of the columns; shares in per cent."""
    shares = [*scores["ms_jaccard"], *scores["self_bleu"], *scores["distinct"], scores["rep"]]
    return [scores["kld"], *(100 * share for share in shares), scores["uniq"]]


def human(scores):
    blank = scores["human"] | {"kld": None, "ms_jaccard": []}
    values = row(blank)
    return [None] * 4 + values[1:]


def markdown(rows):
    digits = [2] + [1] * 9 + [2, 0]
    lines = ["| | " + " | ".join(COLUMNS) + " |", "|---|" + "--:|" * len(COLUMNS)]
    for name, values in rows.items():
        cells = ["–" if value is None else f"{value:.{d}f}" for value, d in zip(values, digits)]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def panel(left, title, ks, lines, dashed):
    """One diagram: a line for each series, with the values of k equally spaced."""
    values = [value for series in lines.values() for value in series] + [value for _, value in dashed]
    low, high = min(values), max(values)
    room = 0.08 * (high - low or 1.0)
    low, high = low - room, high + room
    x = lambda place: left + 40 + place * 170 / max(len(ks) - 1, 1)
    y = lambda value: 200 - 160 * (value - low) / (high - low)
    parts = [f'<text x="{left + 125}" y="24" text-anchor="middle" font-weight="bold">{title}</text>']
    parts.append(f'<path d="M{left + 30} 36V204H{left + 220}" fill="none" stroke="#888888"/>')
    for value in (low + room, high - room):
        parts.append(f'<text x="{left + 26}" y="{y(value) + 4:.1f}" text-anchor="end">{value:.3g}</text>')
    for place, k in enumerate(ks):
        parts.append(f'<text x="{x(place):.1f}" y="220" text-anchor="middle">{k}</text>')
    for name, value in dashed:
        place = f'x1="{left + 30}" x2="{left + 220}" y1="{y(value):.1f}" y2="{y(value):.1f}"'
        parts.append(f'<line {place} stroke="{COLOURS[name]}" stroke-dasharray="5 4"/>')
    for name, series in lines.items():
        points = " ".join(f"{x(place):.1f},{y(value):.1f}" for place, value in enumerate(series))
        parts.append(f'<polyline points="{points}" fill="none" stroke="{COLOURS[name]}" stroke-width="2"/>')
        for point in points.split():
            parts.append(f'<circle cx="{point.split(",")[0]}" cy="{point.split(",")[1]}" r="3" fill="{COLOURS[name]}"/>')
    return parts


def figure(ks, rows):
    parts = []
    for place, column in enumerate(["KLD", "MSJ2", "D1"]):
        at = COLUMNS.index(column)
        lines = {way: [rows[f"{way}, k = {k}"][at] for k in ks] for way in ("sampling", "deterministic")}
        dashed = [("human", rows["human"][at])] if rows["human"][at] is not None else []
        parts += panel(250 * place + 10, column, ks, lines, dashed)
    for place, (name, colour) in enumerate(COLOURS.items()):
        parts.append(f'<rect x="{200 + 140 * place}" y="238" width="14" height="4" fill="{colour}"/>')
        parts.append(f'<text x="{220 + 140 * place}" y="244">{name}</text>')
    parts.append('<text x="60" y="244">over k of top-k</text>')
    head = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 760 256" font-family="sans-serif" font-size="11">'
    return "\n".join([head, '<rect width="760" height="256" fill="white"/>', *parts, "</svg>"]) + "\n"


def misses(a, rows):
    """The deterministic rows that are worse than sampling by more than the share."""
    for name in truncations(a.ks, a.ps):
        sampled, found = rows[f"sampling, {name}"], rows[f"deterministic, {name}"]
        worse = [found[0] / sampled[0] - 1] + [1 - found[at] / sampled[at] for at in (1, 2, 3)]
        for column, share in zip(COLUMNS, worse):
            if share > a.share:
                yield f"{name}: {column} is {100 * share:.1f} % worse than sampling's"
        if found[COLUMNS.index("Rep")] > 1.0:
            yield f"{name}: Rep is above 1 %"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=Path)
    parser.add_argument("run", type=Path)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--protocol", default="paper", choices=["paper", "lyrics"])
    parser.add_argument("--ks", type=int, nargs="+", default=[3, 5, 10, 20, 40])
    parser.add_argument("--ps", type=float, nargs="*", default=[0.9])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("deterministic"))
    parser.add_argument("--figure", type=Path)
    parser.add_argument("--share", type=float)
    parser.add_argument("--texts", type=int, help="no more prefixes than this")
    a = parser.parse_args()
    a.program = a.program.resolve()
    a.out.mkdir(parents=True, exist_ok=True)
    references, files = a.out / "human.jsonl", {}
    for name, flags, names in ways(a):
        files[name] = [generate(a, file, flags, references) for file in names]
    scores = evaluate(a, [path for paths in files.values() for path in paths], references)
    values, rows = iter(scores), {"human": human(scores[0])}
    for name, paths in files.items():
        rows[name] = [statistics.mean(column) for column in zip(*(row(next(values)) for _ in paths))]
    print(markdown(rows))
    if a.figure:
        a.figure.write_text(figure(a.ks, rows))
    missed = list(misses(a, rows)) if a.share is not None else []
    print("\n".join(missed), file=sys.stderr)
    sys.exit(bool(missed))


if __name__ == "__main__":
    main()
