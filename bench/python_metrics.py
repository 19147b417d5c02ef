"""Self-BLEU of the package `f2_softmax` compared with fast-bleu, for every input type.

    pip install f2-softmax fast-bleu numpy
    python bench/python_metrics.py [--texts 1792] [--length 100] [--rounds 9]

Prints a Markdown table. The texts are those of bench/metrics.py: Zipf-distributed ids, 30,000 different ones.
Runs of both alternate, so that other load affects both. fast-bleu computes orders 2 and 3, f2 orders 1 to 3; the
scores are compared first.
"""

import argparse
import os
import random
import statistics
import time

import numpy
from f2_softmax import metrics
from fast_bleu import SelfBLEU

WEIGHTS = {2: (1 / 2,) * 2, 3: (1 / 3,) * 3}


def timed(score, texts):
    began = time.perf_counter()
    result = score(texts)
    return time.perf_counter() - began, result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--texts", type=int, default=1792)
    parser.add_argument("--length", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    draw = random.Random(1)
    ids = [[int(30_000 ** draw.random()) - 1 for _ in range(options.length)] for _ in range(options.texts)]
    kinds = {
        "uint32 array": numpy.array(ids, dtype=numpy.uint32),
        "int64 array": numpy.array(ids),
        "lists of ids": ids,
        "lists of words": [[str(token) for token in text] for text in ids],
        "strings": [" ".join(map(str, text)) for text in ids],
    }
    ours, theirs = {kind: [] for kind in kinds}, []
    for _ in range(options.rounds):
        seconds, expected = timed(lambda texts: SelfBLEU(texts, WEIGHTS).get_score(), ids)
        theirs.append(seconds)
        for kind, texts in kinds.items():
            seconds, scores = timed(lambda texts: metrics.self_bleu(texts, 3, "textbook"), texts)
            ours[kind].append(seconds)
            for order in (2, 3):
                assert abs(scores[order - 1] - statistics.mean(expected[order])) < 1e-7
    print(f"{options.texts} texts of {options.length} tokens, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}\n")
    print("| | fastest | median | fast-bleu takes times that (fastest, median) |\n|---|--:|--:|--:|")
    best, usual = min(theirs), statistics.median(theirs)
    for kind, seconds in ours.items():
        fastest, median = min(seconds), statistics.median(seconds)
        print(f"| self_bleu of {kind} | {1e3 * fastest:.1f} ms | {1e3 * median:.1f} ms | "
              f"{best / fastest:.0f}, {usual / median:.0f} |")
    print(f"| fast-bleu | {1e3 * best:.0f} ms | {1e3 * usual:.0f} ms | |")


if __name__ == "__main__":
    main()
