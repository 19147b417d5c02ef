"""Metrics of generated text beyond the seven of *F²-Softmax*, as `f2 eval --metrics` computes them.

Texts are given as in `f2_softmax.metrics`, which also exports these functions. Each equals its published
implementation; docs/metrics.md of the project defines them.
"""

from __future__ import annotations

import math
from array import array
from typing import Any, Callable, Optional

from . import _native
from ._texts import prepared


def compression_ratio(texts: list[str]) -> float:
    """The compression ratio of the texts, joined by spaces, with gzip at level 9.

    >>> compression_ratio(["the cat sat on the mat"] * 100) > 20
    True
    """
    return _native.compression_ratio(list(texts))


def self_repetition(texts: Any, n: int = 4) -> float:
    """The mean of ln(1 + the number of other texts that have each distinct n-gram of a text) (Salkar et al., 2022).

    >>> round(self_repetition(["a b c d e", "x a b c d", "a b"]), 4)
    0.4621
    """
    return _native.self_repetition(prepared("texts", texts), n)


def rep_n(texts: Any, n: int = 4) -> float:
    """The share of n-grams that occurred earlier in the same text (Su et al., 2022).

    >>> rep_n([[1, 2, 1, 2, 1], [3, 4]], n=2)
    0.4
    """
    return _native.rep_n(prepared("texts", texts), n)


def diversity(texts: Any) -> float:
    """The product of 1 − rep-n over n = 2, 3, 4 (Su et al., 2022).

    >>> diversity(["once upon a time there was"])
    1.0
    """
    given = prepared("texts", texts)
    return math.prod(1.0 - _native.rep_n(given, n) for n in (2, 3, 4))


def seq_rep(texts: Any, n: int = 4) -> float:
    """The share of repeated n-grams of each text, averaged over the texts (Welleck et al., 2020).

    >>> seq_rep([[1, 2, 1, 2, 1], [3, 4]], n=2)
    0.25
    """
    return _native.seq_rep(prepared("texts", texts), n)


def rep_l(texts: Any, window: int = 128) -> float:
    """The share of tokens that are among the `window` tokens before them (Welleck et al., 2020).

    >>> rep_l([[1, 2, 1, 3, 3]], window=2)
    0.4
    """
    return _native.rep_l(prepared("texts", texts), window)


def zipf(texts: Any, ranks: int = 5000) -> float:
    """The Zipf coefficient: the negative slope of ln(count) over ln(rank) (Holtzman et al., 2020).

    >>> round(zipf([[1] * 12, [2] * 6, [3] * 4, [4] * 3]), 12)
    1.0
    """
    return _native.zipf(prepared("texts", texts), ranks)


def entropy(texts: Any, n: int = 1) -> float:
    """The entropy of the n-grams of all texts, in nats.

    >>> round(entropy(["a b a b"]), 4)
    0.6931
    """
    return _native.entropy(prepared("texts", texts), n)


def mattr(texts: Any, window: int = 50) -> float:
    """The moving-average type-token ratio of each text, averaged (Covington and McFall, 2010).

    >>> mattr([[1, 1, 2], [3]], window=2)
    0.875
    """
    return _native.mattr(prepared("texts", texts), window)


def vendi(texts: Any, max_order: int = 4) -> float:
    """The n-gram Vendi score, the effective number of different texts (Friedman and Dieng, 2023).

    >>> round(vendi(["a b c d", "a b c d", "e f g h"]), 4)
    1.8899
    """
    return _native.vendi(prepared("texts", texts), max_order)


def novelty(texts: Any, training: Any, n: int = 4) -> float:
    """The share of n-grams that do not occur in the training texts.

    >>> novelty(["the cat sat down"], training=["the cat sat on the mat"], n=2)
    0.3333333333333333
    """
    return _native.novelty(_matches(texts, training), n)


def longest_match(texts: Any, training: Any) -> float:
    """The mean length of the longest token sequence of each text that also occurs in the training texts.

    >>> longest_match(["the cat sat down", "a dog"], training=["the cat sat on the mat"])
    1.5
    """
    return _native.longest_match(_matches(texts, training))


def mauve(hyps: Any, refs: Any, clusters: Optional[int] = None, seed: int = 25) -> float:
    """MAUVE of two sets of points, such as a model's last hidden states (Pillutla et al., 2021).

    Equal to `mauve-text` with its defaults on the same points.

    Args:
        hyps: points of generated texts: a two-dimensional array or tensor, or a list of lists.
        refs: points of human texts.
        clusters: the number of clusters; a tenth of the smaller set if not given.
        seed: determines the points from which clusters are initialised.

    >>> points = [[float(i % 7), float(i % 5), 1.0] for i in range(60)]
    >>> round(mauve(points, points), 6)
    1.0
    """
    return _native.mauve(_points(hyps), _points(refs), clusters, seed)


def coherence(prompts: Any, texts: Any) -> float:
    """The mean cosine similarity between the feature vectors of each prompt and its continuation (Su et al., 2022).

    >>> round(coherence([[1.0, 0.0]], [[3.0, 4.0]]), 12)
    0.6
    """
    return _native.coherence(_points(prompts), _points(texts))


def compute_further(texts: Any, training: Any = None) -> dict[str, Optional[float]]:
    """All metrics of this module that need no model, with the names used by `f2 eval`.

    `None` stands for a value that is not defined for these texts, or whose input was not given.

    >>> scores = compute_further(["the cat sat on the mat", "the dog ran"])
    >>> scores["rep_n_2"], scores["novelty_2"]
    (0.0, None)
    """
    # Read several times, which is not possible with a generator.
    given = texts if hasattr(texts, "shape") else list(texts)
    strings = isinstance(given, list) and all(isinstance(text, str) for text in given)
    scores: dict[str, Optional[float]] = {}

    def put(name: str, score: Callable[[], float], known: bool = True) -> None:
        try:
            scores[name] = score() if known else None
        except ValueError:
            scores[name] = None

    put("compression_ratio", lambda: compression_ratio(given), strings)
    put("self_repetition", lambda: self_repetition(given))
    for n in (2, 3, 4):
        put(f"rep_n_{n}", lambda: rep_n(given, n))
    put("diversity", lambda: diversity(given))
    put("seq_rep_4", lambda: seq_rep(given))
    for window in (16, 32, 128):
        put(f"rep_l_{window}", lambda: rep_l(given, window))
    put("zipf", lambda: zipf(given))
    for n in (1, 2, 3):
        put(f"entropy_{n}", lambda: entropy(given, n))
    put("mattr", lambda: mattr(given))
    matches = None if training is None else _matches(given, training)
    for n in (2, 4, 8):
        put(f"novelty_{n}", lambda: _native.novelty(matches, n), matches is not None)
    put("longest_match", lambda: _native.longest_match(matches), matches is not None)
    put("vendi", lambda: vendi(given))
    return scores


def _matches(texts: Any, training: Any) -> list[list[int]]:
    return _native.training_matches(prepared("texts", texts), prepared("training", training))


def _points(rows: Any) -> tuple[bytes, int]:
    """Rows of numbers as the bytes of 32-bit floats, and the length of a row."""
    if hasattr(rows, "detach"):
        rows = rows.detach().cpu().float().numpy()
    if hasattr(rows, "astype"):
        if rows.ndim != 2:
            raise ValueError(f"points are rows of an array of two dimensions, not {rows.ndim}")
        return rows.astype("float32").tobytes(), rows.shape[1]
    rows = [list(row) for row in rows]
    if any(len(row) != len(rows[0]) for row in rows):
        raise ValueError("all points have equally many numbers")
    width = len(rows[0]) if rows else 0
    return array("f", (number for row in rows for number in row)).tobytes(), width
