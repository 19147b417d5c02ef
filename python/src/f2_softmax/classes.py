"""Frequency classes: how F²-Softmax divides a vocabulary."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Optional

from ._native import Selection
from ._native import mefmax as _mefmax

__all__ = ["Selection", "mefmax", "ranks"]


def mefmax(
    counts: Iterable[int],
    method: str = "greedy",
    k: Optional[int] = None,
    unseen: int = 1,
) -> Selection:
    """Partitions a vocabulary into frequency classes with the highest mean efficiency (MefMax).

    Args:
        counts: how often each token occurs in the training text, in any order. Classes are ranges
            of frequency ranks; `Selection.ids` gives the token of each rank.
        method: `greedy` is the paper's Algorithm 1, `author` the rule of its authors' program,
            `exact` the best mean efficiency; `equal-tokens` and `equal-frequency` make classes
            of equal size and of equal frequency.
        k: the number of classes; if not given, the method chooses it.
        unseen: the count assumed for tokens that never occur, 0 or 1.

    >>> selection = mefmax([3, 10, 1, 9, 5, 2])
    >>> selection.ends, selection.k
    ([1, 3, 6], 3)
    >>> selection.ids
    [1, 3, 4, 0, 5, 2]
    >>> round(selection.objective, 4)
    1.9037
    >>> [k for k, objective in selection.curve]
    [1, 2, 3]
    """
    return _mefmax(_plain(counts), method, k, unseen)


def ranks(counts: Iterable[int]) -> list[int]:
    """The frequency rank of each token: 0 for the most frequent, ties in the order of the tokens.

    >>> ranks([3, 10, 1, 9])
    [2, 0, 3, 1]
    """
    ids = _mefmax(_plain(counts), "equal-tokens", 1, 0).ids
    rank_of_id = [0] * len(ids)
    for rank, token in enumerate(ids):
        rank_of_id[token] = rank
    return rank_of_id


def _plain(counts: Iterable[int]) -> Iterable[int]:
    """Arrays and tensors as lists of Python's own integers."""
    if isinstance(counts, (str, bytes, dict)):
        raise TypeError(f"counts must be a list of whole numbers, not a {type(counts).__name__}")
    return counts.tolist() if hasattr(counts, "tolist") else counts
