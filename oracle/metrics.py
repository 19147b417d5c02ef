"""Reference implementation of the metrics, and its fixtures.

    python3 oracle/metrics.py

writes two files to crates/f2-metrics/tests/fixtures, both with the metrics of the orders 1 to 5 in
both conventions: metrics_orders.json, synthetic texts of many lengths, empty ones among them; and
metrics_long.json, sets of the size and length of the paper's protocol, whose texts the test generates
from the same random numbers, so that the fixture stays small.

Texts are lists of token ids. Scores are fractions; KL divergence is in nats; None where a
metric is not defined.
"""
import json
import math
import random
from collections import Counter
from functools import cache
from pathlib import Path

MISSING = 1e-10
ORDERS = 5
FIXTURES = Path(__file__).parent.parent / "crates/f2-metrics/tests/fixtures"


def ngrams(text, n):
    return [tuple(text[i:i + n]) for i in range(len(text) - n + 1)]


def padded_ngrams(text, n, pad=-1):
    """The n-grams that the authors count: n-1 pads per side, and every start up to n-1 beyond the end."""
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


@cache
def ngram_counts(text, n):
    return Counter(ngrams(text, n))


def bleu(text, others, n, convention):
    """BLEU-n against all others by direct counting, separately for each text."""
    closest = min((len(o) for o in others), key=lambda length: (abs(length - len(text)), length))
    if not text:
        return 0.0
    penalty = 1.0 if len(text) > closest else math.exp(1 - closest / len(text))
    logarithms = 0.0
    for order in range(1, n + 1):
        own = ngram_counts(tuple(text), order)
        counts = [ngram_counts(tuple(other), order) for other in others]
        matches = sum(min(count, max(other[gram] for other in counts))
                      for gram, count in own.items())
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


def ends_in_loop(text):
    """Whether the phrase that is repeated most often at the end is one of three tokens or more that
    comes twice, or a shorter one that comes more than fifty times."""
    best_length, most = 0, 0
    for length in range(1, 101):
        repeated = 0
        while (repeated + length < len(text)
               and text[-1 - repeated] == text[-1 - repeated - length]):
            repeated += 1
        copies = 1 + repeated // length
        if copies > most:
            best_length, most = length, copies
    return most > 1 and (best_length >= 3 or most > 50)


def band_bounds(counts):
    """The ranks at which the cumulative count reaches 40, 70 and 90 %."""
    bounds, total = [], sum(counts)
    for tenths in (4, 7, 9):
        bounds.append(next(rank for rank in range(len(counts))
                           if 10 * sum(counts[:rank + 1]) >= tenths * total))
    return bounds


def band_shares(texts, bounds):
    tokens = [token for text in texts for token in text]
    edges = [0] + bounds + [math.inf]
    return [sum(low <= token < high for token in tokens) / len(tokens)
            for low, high in zip(edges, edges[1:])]


def split_mix(state):
    """SplitMix64."""
    while True:
        state = (state + 0x9E3779B97F4A7C15) % 2**64
        z = state
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 % 2**64
        z = (z ^ z >> 27) * 0x94D049BB133111EB % 2**64
        yield z ^ z >> 31


def generated_texts(seed, texts, length, octaves, loop_every, period):
    """Texts whose ranks are spread evenly over octaves, as in Zipf's law. In every
    `loop_every`th one the second half repeats its first `period` tokens."""
    numbers, made = split_mix(seed), []
    for number in range(texts):
        text = []
        for position in range(length):
            drawn = next(numbers)
            octave = drawn % octaves
            token = (1 << octave) - 1 + (drawn >> 32) % (1 << octave)
            loops = number % loop_every == 0 and position >= length // 2 + period
            text.append(text[-period] if loops else token)
        made.append(text)
    return made


def long_case():
    refs = dict(seed=1, texts=160, length=100, octaves=12, loop_every=1000, period=1)
    hyps = dict(seed=2, texts=128, length=100, octaves=9, loop_every=8, period=5)
    counts = [10**6 // (rank + 1) for rank in range(4095)]
    case = dict(refs=refs, hyps=hyps, bands=dict(total=10**6, ranks=4095))
    refs, hyps = generated_texts(**refs), generated_texts(**hyps)
    case["bands"]["bounds"] = bounds = band_bounds(counts)
    case["bands"] |= dict(refs=band_shares(refs, bounds), hyps=band_shares(hyps, bounds))
    case["repetition"] = sum(map(ends_in_loop, hyps)) / len(hyps)
    return case | scores(refs, hyps)


def scores(refs, hyps):
    by_convention = dict(uniq=len(set().union(*hyps)))
    for convention in ("paper", "textbook"):
        by_convention[convention] = dict(
            kld=kld(refs, hyps, convention), ms_jaccard=ms_jaccard(refs, hyps, convention),
            self_bleu=self_bleu(hyps, convention), distinct=distinct(hyps, convention))
    return by_convention


def main():
    orders = [dict(name=name, refs=refs, hyps=hyps) | scores(refs, hyps)
              for name, refs, hyps in cases()]
    (FIXTURES / "metrics_orders.json").write_text(json.dumps(orders) + "\n")
    (FIXTURES / "metrics_long.json").write_text(json.dumps(long_case()) + "\n")


if __name__ == "__main__":
    main()
