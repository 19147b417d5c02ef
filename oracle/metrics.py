"""The metrics written as plainly as possible, and the fixture they give.

    python3 oracle/metrics.py

writes crates/f2-metrics/tests/fixtures/metrics_orders.json: synthetic texts of many lengths,
empty ones among them, with every metric of the orders 1 to 5 in both conventions.

Texts are lists of token ids. Scores are fractions; KL divergence is in nats; None where a
metric is not defined.
"""
import json
import math
import random
from collections import Counter
from pathlib import Path

MISSING = 1e-10
ORDERS = 5
FIXTURE = Path(__file__).parent.parent / "crates/f2-metrics/tests/fixtures/metrics_orders.json"


def ngrams(text, n):
    return [tuple(text[i:i + n]) for i in range(len(text) - n + 1)]


def padded_ngrams(text, n, pad=-1):
    """What the authors count: n-1 pads per side, and every start up to n-1 beyond the end."""
    padded = [pad] * (n - 1) + list(text) + [pad] * (n - 1)
    return [tuple(padded[i:i + n]) for i in range(len(padded) + n - 1)]


def counts(texts, n, convention):
    cut = padded_ngrams if convention == "paper" else ngrams
    return Counter(gram for text in texts for gram in cut(text, n))


def kld(refs, hyps, convention):
    r, h = counts(refs, 1, convention), counts(hyps, 1, convention)
    if not r or not h:
        return None
    total_r, total_h = sum(r.values()), sum(h.values())
    score = 0.0
    for gram in set(r) | set(h):
        if gram not in r and convention == "textbook":
            continue
        p = r[gram] / total_r if gram in r else MISSING
        q = h[gram] / total_h if gram in h else MISSING
        score += p * math.log(p / q)
    return score


def jaccard(refs, hyps, n, convention):
    r, h = counts(refs, n, convention), counts(hyps, n, convention)
    if convention == "paper":
        over_r, over_h, missing = sum(r.values()), sum(h.values()), MISSING
    else:
        over_r, over_h, missing = len(refs), len(hyps), 0.0
    if not r and not h:
        return None
    pairs = [(r[g] / over_r if g in r else missing, h[g] / over_h if g in h else missing)
             for g in set(r) | set(h)]
    return sum(map(min, pairs)) / sum(map(max, pairs))


def ms_jaccard(refs, hyps, convention):
    orders = [jaccard(refs, hyps, n, convention) for n in range(1, ORDERS + 1)]
    scores = []
    for n in range(1, ORDERS + 1):
        scores.append(None if None in orders[:n] else math.prod(orders[:n]) ** (1 / n))
    return scores


def bleu(text, others, n, convention):
    """BLEU-n against all others by counting, nothing shared between texts."""
    closest = min((len(o) for o in others), key=lambda length: (abs(length - len(text)), length))
    if not text:
        return 0.0
    penalty = 1.0 if len(text) > closest else math.exp(1 - closest / len(text))
    logarithms = 0.0
    for order in range(1, n + 1):
        own = Counter(ngrams(text, order))
        most = Counter()
        for other in others:
            most |= Counter(ngrams(other, order))
        matches = sum((own & most).values())
        if matches == 0 and order == 1 and convention == "textbook":
            return 0.0
        if matches == 0:
            matches = 1e-100 if convention == "paper" else 0.1
        logarithms += math.log(matches / max(1, sum(own.values())))
    return penalty * math.exp(logarithms / n)


def self_bleu(texts, convention):
    scores = []
    for n in range(1, ORDERS + 1):
        each = [bleu(t, texts[:i] + texts[i + 1:], n, convention) for i, t in enumerate(texts)]
        scores.append(sum(each) / len(each))
    return scores


def distinct(texts, convention):
    scores = []
    for n in range(1, ORDERS + 1):
        if convention == "paper":
            each = [len(set(ngrams(t, n))) / len(t) for t in texts if len(t) > 5]
        else:
            each = [len(set(ngrams(t, n))) / len(ngrams(t, n)) for t in texts if len(t) >= n]
        scores.append(sum(each) / len(each) if each else None)
    return scores


def zipf_texts(rng, lengths, vocabulary):
    weights = [1 / (rank + 1) for rank in range(vocabulary)]
    return [rng.choices(range(vocabulary), weights, k=length) for length in lengths]


def cases():
    rng = random.Random(20201116)
    yield "even", zipf_texts(rng, [20] * 12, 40), zipf_texts(rng, [20] * 12, 40)
    mixed = [rng.randrange(0, 30) for _ in range(14)] + [0, 1, 2, 3]
    yield "mixed lengths, some empty", zipf_texts(rng, [25] * 6, 60), zipf_texts(rng, mixed, 30)
    yield "sets of unlike size", zipf_texts(rng, [9] * 40, 25), zipf_texts(rng, [40] * 3, 25)
    yield "too short for most orders", zipf_texts(rng, [2] * 5, 4), zipf_texts(rng, [2, 1, 2], 4)


def main():
    fixture = []
    for name, refs, hyps in cases():
        case = dict(name=name, refs=refs, hyps=hyps, uniq=len(set().union(*hyps)))
        for convention in ("paper", "textbook"):
            case[convention] = dict(
                kld=kld(refs, hyps, convention), ms_jaccard=ms_jaccard(refs, hyps, convention),
                self_bleu=self_bleu(hyps, convention), distinct=distinct(hyps, convention))
        fixture.append(case)
    FIXTURE.write_text(json.dumps(fixture) + "\n")


if __name__ == "__main__":
    main()
