from collections.abc import Iterable
from os import PathLike
from typing import Any, Optional, Union

class Selection:
    """The classes a method chose, and how good they are."""

    @property
    def ends(self) -> list[int]:
        """The rank after the last of each class; the last is the size of the vocabulary."""
    @property
    def k(self) -> int:
        """The number of classes."""
    @property
    def method(self) -> str:
        """How the classes were cut."""
    @property
    def objective(self) -> float:
        """The mean efficiency of the classes, Eq. 5 of the paper."""
    @property
    def class_efficiency(self) -> float:
        """How evenly the classes share the mass."""
    @property
    def curve(self) -> list[tuple[int, float]]:
        """`(k, objective)` of every number of classes that was tried."""
    @property
    def masses(self) -> list[float]:
        """The share of all occurrences that each class holds."""
    @property
    def efficiencies(self) -> list[float]:
        """How evenly the tokens of each class share its mass."""
    @property
    def ids(self) -> list[int]:
        """The token of each rank, the most frequent first."""
    def save(self, path: Union[str, PathLike[str]]) -> None:
        """Writes `classes.json`, as `f2 classes` does."""

def mefmax(counts: Iterable[int], method: str, k: Optional[int], unseen: int) -> Selection: ...
def self_bleu(texts: Any, max_order: int, convention: str) -> list[float]: ...
def bleu(hyps: Any, refs: Any, max_order: int, convention: str) -> list[float]: ...
def distinct(texts: Any, max_order: int, convention: str) -> list[float]: ...
def ms_jaccard(hyps: Any, refs: Any, max_order: int, convention: str) -> list[float]: ...
def kld(hyps: Any, refs: Any, convention: str) -> float: ...
def repetition(texts: Any) -> float: ...
def uniq(texts: Any) -> int: ...
def bands(texts: Any, counts: Iterable[int]) -> list[float]: ...
def evaluate(
    hyps: Any,
    refs: Any,
    counts: Optional[Iterable[int]],
    max_order: int,
    convention: str,
    bootstrap: Optional[int],
    seed: int,
) -> dict[str, Any]: ...
