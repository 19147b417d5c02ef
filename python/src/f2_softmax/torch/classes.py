"""Frequency classes of a vocabulary as ranges of token ids, and the groups in which they are computed."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from operator import index

# On a GPU a group of classes costs about twenty kernel launches, whatever its size. On an H200 these took as
# long as the computation and the gradients of about this many logits ...
GPU_OVERHEAD = 5_000_000
# ... in a batch of this many positions, evenly distributed over the classes.
GPU_POSITIONS = 8192


def check_class_ends(class_ends: Iterable[int]) -> list[int]:
    """The ends as plain integers; raises `ValueError` or `TypeError` if they are invalid."""
    try:
        ends = [index(end) for end in class_ends]
    except TypeError as error:
        raise TypeError(f"class_ends must be integers: {error}") from None
    if not ends:
        raise ValueError("class_ends is empty: there must be at least one class")
    if any(end <= start for start, end in zip([0, *ends[:-1]], ends)):
        raise ValueError(f"class_ends must rise from above 0; got {_shown(ends)}")
    return ends


def group_ends(ends: list[int], overhead: float, positions: float) -> list[int]:
    """The number of classes before the end of each group.

    A group is computed in one product: the logits of all its tokens at all its positions, masked if it has several
    classes. The groups minimise the total cost, which is `overhead` for each group and 1 for each logit.

    >>> group_ends([1, 3, 10, 500], overhead=1000, positions=100)
    [3, 4]
    >>> group_ends([1, 3, 10, 500], overhead=0, positions=100)
    [1, 2, 3, 4]
    """
    count, borders = len(ends), [0, *ends]
    # The minimum cost of the classes before each one, times `count`: a class has 1/`count` of the positions,
    # and the costs stay integers.
    best = [0]

    def cost(start: int, end: int) -> float:
        logits = positions * (end - start) * (borders[end] - borders[start])
        return best[start] + overhead * count + logits

    def overtakes(start: int, earlier: int) -> int:
        """The first end for which a group that starts at `start` costs less than one that starts at `earlier`."""
        low, high = start + 1, count + 1
        while low < high:
            middle = (low + high) // 2
            if cost(start, middle) < cost(earlier, middle):
                high = middle
            else:
                low = middle + 1
        return low

    # A further class adds more cost to a longer group, so a start that is better than an earlier one remains
    # better. The queue has the starts that are or will become best, each with the first end it is best for.
    queue = deque([(0, 1)])
    starts = []
    for end in range(1, count + 1):
        while len(queue) > 1 and queue[1][1] <= end:
            queue.popleft()
        starts.append(queue[0][0])
        best.append(cost(starts[-1], end))
        first = end + 1
        while queue:
            earlier, since = queue[-1]
            first = overtakes(end, earlier)
            if first > max(since, end + 1):
                break
            queue.pop()
        queue.append((end, first))
    groups = [len(ends)]
    while starts[groups[-1] - 1] > 0:
        groups.append(starts[groups[-1] - 1])
    return groups[::-1]


def _shown(ends: list[int]) -> str:
    return str(ends) if len(ends) <= 12 else f"{ends[:12]} and {len(ends) - 12} more"
