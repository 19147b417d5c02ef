"""The groups in which classes are computed."""

import itertools
import random

import pytest

pytest.importorskip("torch")

from f2_softmax.torch.classes import group_ends  # noqa: E402


def groups_by_trying_all(ends, overhead, positions):
    """The groups of minimum cost, by trying every start for every end."""
    borders, best, groups = [0, *ends], [0], [[]]
    for end in range(1, len(borders)):
        costs = [
            best[start] + overhead * len(ends) + positions * (end - start) * (borders[end] - borders[start])
            for start in range(end)
        ]
        best.append(min(costs))
        groups.append([*groups[costs.index(best[-1])], end])
    return groups[-1]


def test_groups_are_those_of_least_cost():
    draw = random.Random(1)
    several = 0
    for _ in range(300):
        sizes = [draw.choice([1, 2, 10, draw.randint(1, 500)]) for _ in range(draw.randint(1, 60))]
        ends = list(itertools.accumulate(sizes))
        overhead, positions = draw.choice([0, 10, 1000, 100_000]), draw.choice([1, 7, 64])
        expected = groups_by_trying_all(ends, overhead, positions)
        assert group_ends(ends, overhead, positions) == expected, (ends, overhead, positions)
        several += 1 < len(expected) < len(ends)
    assert several > 100, several


def test_groups_of_many_classes_are_found_without_trying_all():
    class Counted(int):
        """An end that counts how many costs are computed, each of which subtracts one end from another."""

        times = 0

        def __sub__(self, other):
            Counted.times += 1
            return int(self) - int(other)

    count = 3000
    group_ends([Counted(10 * end) for end in range(1, count + 1)], 5_000_000, 8192)
    assert 0 < Counted.times < 50 * count, Counted.times
