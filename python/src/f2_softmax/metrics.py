"""Diversity metrics of generated text, as `f2 eval` computes them.

Texts are a list of strings (split into words at white space), of lists of words or of token ids, a
two-dimensional integer array or tensor, a list of one-dimensional ones, or a nested tensor. Arrays of
`uint32` are read in place. Every function uses all cores and releases the global interpreter lock; Ctrl-C stops it.

Scores are fractions, counts or nats, never percentages. The `convention` is `paper`, as computed by the authors
of *F²-Softmax*, or `textbook`, the original definition of each metric.

The further metrics, beyond the paper's seven, are in `f2_softmax.further` and also exported here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Optional

from . import _native
from ._texts import prepared
from .further import (
    coherence,
    compression_ratio,
    compute_further,
    diversity,
    entropy,
    longest_match,
    mattr,
    mauve,
    novelty,
    rep_l,
    rep_n,
    self_repetition,
    seq_rep,
    vendi,
    zipf,
)

__all__ = [
    "Evaluation",
    "bands",
    "bleu",
    "chrf",
    "compute",
    "compute_all",
    "coherence",
    "compression_ratio",
    "compute_further",
    "corpus_bleu",
    "distinct",
    "diversity",
    "entropy",
    "kld",
    "longest_match",
    "mattr",
    "mauve",
    "ms_jaccard",
    "novelty",
    "rep_l",
    "rep_n",
    "repetition",
    "rouge",
    "self_bleu",
    "self_repetition",
    "seq_rep",
    "uniq",
    "vendi",
    "zipf",
]

BANDS = ("frequent", "medium", "rare", "very_rare")


def self_bleu(texts: Any, max_order: int = 3, convention: str = "paper") -> list[float]:
    """Self-BLEU-1 to Self-BLEU-`max_order`: the mean BLEU of each text against all others.

    The more similar the texts, the higher the value. With the convention `textbook` it equals NLTK's
    `sentence_bleu` with `method1`.

    >>> scores = self_bleu(["the cat sat", "the cat ran"], max_order=2)
    >>> [round(score, 4) for score in scores]
    [0.6667, 0.5774]
    """
    return _native.self_bleu(prepared("texts", texts), max_order, convention)


def bleu(hyps: Any, refs: Any, max_order: int = 3, convention: str = "paper") -> list[float]:
    """BLEU-1 to BLEU-`max_order`: the mean BLEU of each hypothesis against all references.

    >>> scores = bleu(["the cat sat"], ["the cat ran", "a dog sat"], max_order=2)
    >>> [round(score, 4) for score in scores]
    [1.0, 0.7071]
    """
    return _native.bleu(prepared("hyps", hyps), prepared("refs", refs), max_order, convention)


def corpus_bleu(hyps: Iterable[str], refs: Iterable[str]) -> float:
    """BLEU-4 of strings, each with its own reference: sacreBLEU's `corpus_bleu`, as a fraction.

    >>> round(corpus_bleu(["the cat sat on a mat"], ["the cat sat on the mat"]), 4)
    0.5373
    """
    return _native.corpus_bleu(_strings("hyps", hyps), _strings("refs", refs))


def chrf(hyps: Iterable[str], refs: Iterable[str], word_order: int = 0) -> float:
    """chrF of strings, each with its own reference: sacreBLEU's `corpus_chrf`, as a fraction.

    With `word_order=2` it is chrF++.

    >>> chrf(["a cat"], ["a cat"])
    1.0
    """
    return _native.chrf(_strings("hyps", hyps), _strings("refs", refs), word_order)


def rouge(hyps: Iterable[str], refs: Iterable[str]) -> dict[str, float]:
    """Mean F-scores of ROUGE-1, ROUGE-2 and ROUGE-L: rouge-score's, without stemming.

    >>> rouge(["the cat, sitting"], ["The cat sat."])["rouge_2"]
    0.5
    """
    scores = _native.rouge(_strings("hyps", hyps), _strings("refs", refs))
    return dict(zip(("rouge_1", "rouge_2", "rouge_l"), scores))


def _strings(name: str, texts: Iterable[str]) -> list[str]:
    """A list of strings; a single string would be read as a list of its letters."""
    strings = [] if isinstance(texts, str) else list(texts)
    if isinstance(texts, str) or not all(isinstance(text, str) for text in strings):
        raise TypeError(f"{name} must be strings, one for each text")
    return strings


def distinct(texts: Any, max_order: int = 3, convention: str = "paper") -> list[float]:
    """Distinct-1 to Distinct-`max_order`: the mean share of distinct n-grams in each text.

    The convention `paper` ignores texts of five tokens or fewer.

    >>> distinct([[1, 2, 1, 2, 1, 2], [1, 2, 3, 4, 1, 2]], max_order=1)
    [0.5]
    """
    return _native.distinct(prepared("texts", texts), max_order, convention)


def ms_jaccard(hyps: Any, refs: Any, max_order: int = 3, convention: str = "paper") -> list[float]:
    """MS-Jaccard-1 to MS-Jaccard-`max_order`: the similarity of the n-gram distributions of two sets.

    >>> ms_jaccard(["a b c d e f"], ["a b c d e f"])
    [1.0, 1.0, 1.0]
    """
    return _native.ms_jaccard(prepared("hyps", hyps), prepared("refs", refs), max_order, convention)


def kld(hyps: Any, refs: Any, convention: str = "paper") -> float:
    """The KL divergence D(refs ‖ hyps) of the word distributions, in nats.

    >>> kld([[1, 1, 2, 2]], [[1, 2]])
    0.0
    """
    return _native.kld(prepared("hyps", hyps), prepared("refs", refs), convention)


def repetition(texts: Any) -> float:
    """The share of texts that end in a loop.

    >>> repetition(["once upon a time and again and again and again", "the end"])
    0.0
    >>> repetition([[5, 1, 2, 3, 1, 2, 3], [1, 2, 3, 4, 5, 6]])
    0.5
    """
    return _native.repetition(prepared("texts", texts))


def uniq(texts: Any) -> int:
    """The number of different tokens in all texts.

    >>> uniq(["the cat sat", "the cat ran"])
    4
    """
    return _native.uniq(prepared("texts", texts))


def bands(texts: Any, counts: Iterable[int]) -> dict[str, float]:
    """The shares of frequent, medium, rare and very rare tokens.

    The bands are separated at 40, 70 and 90 % of the tokens of the training text, in which each id occurs
    `counts[id]` times.

    >>> bands([[0, 1, 2, 9]], counts=[10, 9, 8, 7, 6, 5, 4, 3, 2, 1])
    {'frequent': 0.5, 'medium': 0.25, 'rare': 0.0, 'very_rare': 0.25}
    """
    return dict(zip(BANDS, _native.bands(prepared("texts", texts), _counts(counts))))


@dataclass(frozen=True)
class Evaluation(Mapping):
    """All metrics of a set of texts: a mapping from names to values.

    `None` stands for a value that is not defined or was not asked for; `undefined` says why.
    """

    values_by_name: dict[str, Optional[float]]
    """Names are `kld`, `ms_jaccard_1` …, `self_bleu_1` …, `distinct_1` …, `rep`, `uniq` and the
    bands `frequent`, `medium`, `rare`, `very_rare`."""
    intervals: Optional[dict[str, Optional[tuple[float, float]]]]
    """95 % intervals, where they were asked for."""
    texts: int
    """How many texts were scored."""
    tokens: int
    """How many tokens they hold."""
    undefined: list[str]
    """Why values are missing."""

    def __getitem__(self, name: str) -> Optional[float]:
        return self.values_by_name[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.values_by_name)

    def __len__(self) -> int:
        return len(self.values_by_name)

    def to_pandas(self, name: str = "value") -> Any:
        """A `pandas.DataFrame` with a row for each metric, and columns for the interval's ends."""
        import pandas

        frame = pandas.DataFrame({name: pandas.Series(self.values_by_name, dtype=float)})
        if self.intervals is not None:
            for column, end in (("low", 0), ("high", 1)):
                ends = {key: pair[end] for key, pair in self.intervals.items() if pair is not None}
                frame[column] = pandas.Series(ends, dtype=float)
        return frame


def compute_all(
    hyps: Any,
    refs: Any = None,
    counts: Optional[Iterable[int]] = None,
    convention: str = "paper",
    bootstrap: Optional[int] = None,
    seed: int = 1,
    max_order: int = 3,
) -> Evaluation:
    """Computes every metric but perplexity, with one index of n-grams.

    Args:
        hyps: generated texts.
        refs: human texts; without them there is no KL divergence and no MS-Jaccard.
        counts: the count of each id in the training text, for the frequency bands.
        convention: `paper` or `textbook`.
        bootstrap: the number of bootstrap replicates for 95 % intervals; 1000 is usual.
        seed: the random seed of the bootstrap.
        max_order: the largest order of n-grams.

    >>> human = [[1, 2, 3, 4, 5, 6], [1, 2, 3, 7, 8, 9]]
    >>> model = [[1, 2, 1, 2, 1, 2], [1, 2, 3, 4, 1, 2]]
    >>> scores = compute_all(model, human)
    >>> scores["uniq"], scores["distinct_1"], round(scores["self_bleu_1"], 4)
    (4.0, 0.5, 0.6667)
    """
    result = _native.evaluate(
        prepared("hyps", hyps),
        None if refs is None else prepared("refs", refs),
        None if counts is None else _counts(counts),
        max_order,
        convention,
        bootstrap,
        seed,
    )
    return Evaluation(
        result["values"], result["intervals"], result["texts"], result["tokens"], result["undefined"]
    )


def compute(*, predictions: Any, references: Any = None, **options: Any) -> dict[str, Any]:
    """`compute_all` with the argument names of Hugging Face `evaluate`, without values that are not defined.

    >>> scores = compute(predictions=["the cat sat on the mat"] * 2, references=["a dog ran up a hill"])
    >>> scores["uniq"], scores["self_bleu_2"]
    (5.0, 1.0)
    """
    scores = compute_all(predictions, references, **options)
    result: dict[str, Any] = {name: value for name, value in scores.items() if value is not None}
    if scores.intervals is not None:
        result["intervals"] = scores.intervals
    return result


def _counts(counts: Iterable[int]) -> Iterable[int]:
    return counts.tolist() if hasattr(counts, "tolist") else counts
