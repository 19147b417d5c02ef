"""Frequency classes of a vocabulary: ranges of token ids, and the groups they are computed in."""

from __future__ import annotations

from collections.abc import Iterable
from operator import index

# On a GPU a class of few tokens costs as much as one of a thousand: the launch of its kernels. So
# neighbouring classes are computed together, masked, while they have no more tokens than this.
GROUPED_TOKENS = 1024


def check_class_ends(class_ends: Iterable[int]) -> list[int]:
    """The ends as plain integers, or a `ValueError` or `TypeError` that says what is wrong."""
    try:
        ends = [index(end) for end in class_ends]
    except TypeError as error:
        raise TypeError(f"class_ends must be integers: {error}") from None
    if not ends:
        raise ValueError("class_ends is empty: there must be at least one class")
    if any(end <= start for start, end in zip([0, *ends[:-1]], ends)):
        raise ValueError(f"class_ends must rise from above 0; got {_shown(ends)}")
    return ends


def group_ends(ends: list[int], most_tokens: int) -> list[int]:
    """How many classes lie before the end of each group.

    A group is one class, or neighbouring classes with no more than `most_tokens` tokens together.

    >>> group_ends([1, 3, 10, 500], most_tokens=10)
    [3, 4]
    >>> group_ends([1, 3, 10, 500], most_tokens=0)
    [1, 2, 3, 4]
    """
    groups: list[int] = []
    start = 0
    for count, end in enumerate(ends, 1):
        if groups and end - start <= most_tokens:
            groups[-1] = count
        else:
            groups.append(count)
            start = ends[count - 2] if count > 1 else 0
    return groups


def _shown(ends: list[int]) -> str:
    return str(ends) if len(ends) <= 12 else f"{ends[:12]} and {len(ends) - 12} more"
