"""Reference implementation of MefMax, and its fixture.

    python3 oracle/mefmax.py

writes crates/f2-classes/tests/fixtures/mefmax_large.json: vocabularies of the paper's size, partitioned by
Algorithm 1 and by the authors' program. The counts follow a formula in integers, which the test also evaluates, so that
the fixture stays small.

Counts are sorted in decreasing order; a partition is the list of the exclusive ends of its classes.
"""
import json
import math
from pathlib import Path

FIXTURE = Path(__file__).parent.parent / "crates/f2-classes/tests/fixtures/mefmax_large.json"

# Objectives closer than this are ties, and the smaller number of classes wins.
TIE = 1e-9


def harmonic_counts(total, shift, vocabulary):
    """A Zipf-like distribution in integers; its tail has long runs of equal counts."""
    return [max(1, total // (rank + shift)) for rank in range(1, vocabulary + 1)]


def efficiency(weights):
    """Entropy divided by its maximum (Eq. 6); a class of one token has efficiency 1."""
    if len(weights) == 1:
        return 1.0
    total = math.fsum(weights)
    shares = [weight / total for weight in weights if weight > 0]
    return -math.fsum(p * math.log(p) for p in shares) / math.log(len(weights))


def members(counts, ends):
    return [counts[start:end] for start, end in zip([0] + ends[:-1], ends)]


def objective_terms(counts, ends):
    """U(C) and every U(V_i) of Eq. 5."""
    classes = members(counts, ends)
    return efficiency([sum(c) for c in classes]), [efficiency(c) for c in classes]


def objective(counts, ends):
    of_classes, of_tokens = objective_terms(counts, ends)
    return of_classes + math.fsum(of_tokens) / len(of_tokens)


def class_cap(counts):
    return max(1, sum(counts) // counts[0])


def greedy(counts, k):
    """Algorithm 1: class j ends where the cumulative count reaches j/k of the total, in integers."""
    total, running, ends = sum(counts), 0, []
    for rank, count in enumerate(counts, start=1):
        running += count
        reached = k * running >= (len(ends) + 1) * total
        one_each = len(counts) - rank == k - len(ends) - 1
        if len(ends) < k - 1 and (reached or one_each):
            ends.append(rank)
    return ends + [len(counts)]


def mefmax(counts):
    best, trace = None, []
    for k in range(1, class_cap(counts) + 1):
        ends = greedy(counts, k)
        score = objective(counts, ends)
        trace.append([k, score])
        if best is None or score > best[1] + TIE:
            best = ends, score
    return best, trace


def running_shares(counts):
    total, running, shares = sum(counts), 0.0, []
    for count in counts:
        running += count / total
        shares.append(running)
    return shares


def author_ends(shares, k):
    """The authors' rule: a class ends before the token that would take it beyond its target, and the remaining mass is
    divided again among the remaining classes. None if the tokens run out."""
    ends, closed = [], 0.0
    for left in range(k, 1, -1):
        start = ends[-1] if ends else 0
        target = 1 / k if left == k else (1 - closed) / left
        beyond = next((r for r in range(start, len(shares)) if shares[r] - closed > target), None)
        if beyond is None:
            return None
        ends.append(max(beyond, start + 1))
        closed = shares[ends[-1] - 1]
    return ends + [len(shares)]


def author_score(counts, shares, ends):
    """U(C) times the mean U(V_i), with one token missing from the last class's mass, as in the authors' code."""
    cuts = [0] + ends[:-1]
    upto = [0.0] + [shares[cut - 1] for cut in cuts[1:]]
    masses = [b - a for a, b in zip(upto, upto[1:])] + [1 - shares[cuts[-1]]]
    of_tokens = [efficiency(c) for c in members(counts, ends)]
    return efficiency(masses) * math.fsum(of_tokens) / len(of_tokens)


def author_mefmax(counts):
    shares = running_shares(counts)
    best, trace = None, []
    for k in range(2, int(1 / shares[0]) + 1):
        ends = author_ends(shares, k)
        if ends is None:
            continue
        score = author_score(counts, shares, ends)
        trace.append([k, score])
        if best is None or score > best[1]:
            best = ends, score
    return best, trace


def case(name, total, shift, vocabulary):
    counts = harmonic_counts(total, shift, vocabulary)
    (ends, score), trace = mefmax(counts)
    of_classes, of_tokens = objective_terms(counts, ends)
    (author, author_best), author_trace = author_mefmax(counts)
    ks = [k for k in (2, 3, 5, 10, 20, 60) if k <= vocabulary]
    per_class = {k: vocabulary // k for k in ks}
    return {
        "name": name,
        "harmonic": {"total": total, "shift": shift, "vocabulary": vocabulary},
        "max_class_num": class_cap(counts),
        "paper": {"K": len(ends), "ends": ends, "objective": score, "U_C": of_classes,
                  "U_V": of_tokens, "trace": trace},
        "greedy_ends_by_K": {k: greedy(counts, k) for k in ks},
        "fixed_eq_token_by_K": {
            k: [per_class[k] * i for i in range(1, k)] + [vocabulary] for k in ks},
        "author": {"K": len(author), "ends": author, "score": author_best, "trace": author_trace},
    }


def main():
    cases = [
        case("the paper's first vocabulary", 10**9, 0, 30_000),
        case("the paper's second vocabulary", 10**9, 0, 40_000),
        case("many classes", 10**8, 3, 30_000),
        case("a small text: most tokens are as rare as their neighbours", 200_000, 1, 20_000),
    ]
    FIXTURE.write_text(json.dumps({"cases": cases}) + "\n")


if __name__ == "__main__":
    main()
