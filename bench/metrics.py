"""Self-BLEU compared with fast-bleu and NLTK, and all metrics, on the same texts in one run.

    python3 bench/metrics.py [--texts 1792] [--length 100] [--rounds 15] [--nltk-texts 8]

needs cargo and a Python with `fast-bleu` and `nltk`. Prints a Markdown table.

The texts are Zipf-distributed token ids, 30,000 different ones. fast-bleu computes orders 2 and 3 (it has no order 1),
f2 orders 1 to 3. Runs of the two programs alternate, so that other load affects both; the table has the fastest and the
median round. NLTK's time is extrapolated from scoring `--nltk-texts` texts against all others, as every text takes it
the same time. The scores of all three are compared before anything is timed.
"""
import argparse
import json
import os
import random
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from fast_bleu import SelfBLEU
from nltk.translate.bleu_score import SmoothingFunction, sentence_bleu

ROOT = Path(__file__).resolve().parent.parent
WEIGHTS = {2: (1 / 2,) * 2, 3: (1 / 3,) * 3}


def synthetic(texts, length):
    rng = random.Random(1)
    return [[int(30_000 ** rng.random()) - 1 for _ in range(length)] for _ in range(texts)]


def build():
    command = ["cargo", "build", "--release", "-p", "f2-metrics", "--example", "time_metrics"]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    target = os.environ.get("CARGO_TARGET_DIR", ROOT / "target")
    return Path(target) / "release/examples/time_metrics"


def ours(program, *arguments):
    output = subprocess.run([program, *map(str, arguments)], check=True, capture_output=True)
    return json.loads(output.stdout)


def fast_bleu(texts):
    start = time.perf_counter()
    scores = SelfBLEU(texts, WEIGHTS).get_score()
    return time.perf_counter() - start, scores


def nltk_scores(texts, count):
    """BLEU-1 to BLEU-3 of the first `count` texts, and the seconds for one."""
    smooth = SmoothingFunction().method1
    weights = [(1.0,), *WEIGHTS.values()]
    start = time.perf_counter()
    scores = [sentence_bleu(texts[:i] + texts[i + 1:], texts[i], weights, smooth)
              for i in range(count)]
    return (time.perf_counter() - start) / count, scores


def check(own, fast, nltk):
    """fast-bleu uses a weight of 1/3 in single precision for order 3, which changes the seventh digit."""
    means = [statistics.mean(fast[n]) for n in (2, 3)]
    for mine, theirs in zip(own["self_bleu"][1:], means):
        assert abs(mine - theirs) < 1e-7, (mine, theirs)
    for mine, theirs in zip(own["first_texts"], nltk):
        assert all(abs(m - t) < 1e-9 for m, t in zip(mine, theirs)), (mine, theirs)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--texts", type=int, default=1792)
    parser.add_argument("--length", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--nltk-texts", type=int, default=8)
    parser.add_argument("--large", type=int, default=100_000, help="texts of the large set; 0: none")
    options = parser.parse_args()
    program, texts = build(), synthetic(options.texts, options.length)
    nltk_one, nltk = nltk_scores(texts, options.nltk_texts)
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
        file.writelines(json.dumps(text) + "\n" for text in texts)
        file.flush()
        fast, own = [], []
        for _ in range(options.rounds):
            seconds, scores = fast_bleu(texts)
            fast.append(seconds)
            own.append(ours(program, file.name, 15))
        check(own[0], scores, nltk)
    report(options, own, fast, nltk_one * options.texts)
    if options.large:
        report_large(options, ours(program, options.large, options.length, 1))


def report(options, own, fast, nltk):
    bleu = [run["self_bleu_s"] for run in own]
    best, median = min(b["fastest"] for b in bleu), statistics.median(b["median"] for b in bleu)
    all_best = min(run["all_metrics_with_human_row_s"]["fastest"] for run in own)
    all_median = statistics.median(run["all_metrics_with_human_row_s"]["median"] for run in own)
    fast_best, fast_median = min(fast), statistics.median(fast)
    print(f"{options.texts} texts of {options.length} tokens, {own[0]['threads']} threads, "
          f"load {os.getloadavg()[0]:.1f}\n")
    print("| | fastest | median | times ours (fastest, median) |")
    print("|---|--:|--:|--:|")
    print(f"| f2-metrics, Self-BLEU 1–3 | {1e3 * best:.1f} ms | {1e3 * median:.1f} ms | 1 |")
    print(f"| fast-bleu, Self-BLEU 2–3 | {1e3 * fast_best:.0f} ms | {1e3 * fast_median:.0f} ms | "
          f"{fast_best / best:.0f}, {fast_median / median:.0f} |")
    print(f"| NLTK, Self-BLEU 1–3 (from {options.nltk_texts} texts) | {nltk:.0f} s | | "
          f"{nltk / best:.0f}, {nltk / median:.0f} |")
    print(f"| f2-metrics, all metrics and the Human row | {1e3 * all_best:.1f} ms | "
          f"{1e3 * all_median:.1f} ms | |")


def report_large(options, run):
    print(f"\n{options.large} texts of {options.length} tokens: Self-BLEU 1–3 "
          f"{run['self_bleu_s']['fastest']:.1f} s, all metrics against as many references "
          f"{run['all_metrics_s']['fastest']:.1f} s, with the Human row "
          f"{run['all_metrics_with_human_row_s']['fastest']:.1f} s, peak memory "
          f"{run['peak_memory_mb']} MB")


if __name__ == "__main__":
    main()
