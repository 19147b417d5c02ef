"""Self-BLEU and its parts as NLTK computes them, with smoothing method 1.

    python3 oracle/nltk_bleu.py      (needs nltk)

writes crates/f2-metrics/tests/fixtures/nltk_self_bleu.json.
"""
import json
import random
from pathlib import Path

import nltk
from nltk.translate.bleu_score import (SmoothingFunction, brevity_penalty, closest_ref_length,
                                       modified_precision, sentence_bleu)

from metrics import ORDERS, zipf_texts

FIXTURE = Path(__file__).parent.parent / "crates/f2-metrics/tests/fixtures/nltk_self_bleu.json"


def parts(text, others):
    closest = closest_ref_length(others, len(text))
    precisions = [modified_precision(others, text, n) for n in range(1, ORDERS + 1)]
    smooth = SmoothingFunction().method1
    return dict(
        matches=[p.numerator for p in precisions], ngrams=[p.denominator for p in precisions],
        closest_length=closest, brevity_penalty=brevity_penalty(closest, len(text)),
        bleu=[sentence_bleu(others, text, [1 / n] * n, smooth) for n in range(1, ORDERS + 1)])


def main():
    rng = random.Random(2002)
    sets = [zipf_texts(rng, [24] * 10, 50),
            zipf_texts(rng, [rng.randrange(1, 40) for _ in range(20)] + [0, 1, 2, 3], 80),
            [[1, 2, 3, 4, 5, 6], [7, 8, 9, 10, 11, 12], [1, 7, 13]]]
    fixture = [dict(texts=texts, each=[parts(t, texts[:i] + texts[i + 1:])
                                       for i, t in enumerate(texts)]) for texts in sets]
    FIXTURE.write_text(json.dumps(dict(nltk=nltk.__version__, sets=fixture)) + "\n")


if __name__ == "__main__":
    main()
