"""Truncating distributions and drawing from them."""

from __future__ import annotations

import math
from typing import Optional, Union

import torch
from torch import Tensor


def truncate(
    logits: Tensor,
    temperature: float,
    k: Union[int, Tensor, None] = None,
    p: float = 1.0,
    strict_p: float = 1.0,
) -> Tensor:
    """Probabilities [rows, n] after temperature, top-k and a nucleus; they need not sum to one.

    Top-k and both nuclei keep all entries that tie with the last one kept. `p` keeps the smallest set that reaches
    the mass; `strict_p` the largest set that does not exceed it, at least one entry. A tensor `k` [rows] gives one
    value for each row.
    """
    if temperature == 0:
        return torch.zeros_like(logits).scatter_(-1, logits.argmax(-1, keepdim=True), 1.0)
    probabilities = torch.softmax(logits.double() / temperature, -1)
    if k is not None:
        if isinstance(k, Tensor):
            kth = probabilities.topk(int(k.max()), -1).values.gather(-1, k[:, None] - 1)
        else:
            kth = probabilities.topk(k, -1).values[..., -1:]
        probabilities = probabilities.where(probabilities >= kth, 0.0)
    for mass, strict in ((p, False), (strict_p, True)):
        if mass < 1:
            probabilities = _nucleus(probabilities, mass, strict)
    return probabilities


def _nucleus(probabilities: Tensor, mass: float, strict: bool) -> Tensor:
    probabilities = probabilities / probabilities.sum(-1, keepdim=True)
    ordered = probabilities.sort(-1, descending=True).values
    # Sums that should equal the mass exactly may differ from it by rounding.
    if strict:
        kept = (ordered.cumsum(-1) <= mass + 1e-12).sum(-1, keepdim=True).clamp(min=1)
    else:
        kept = (ordered.cumsum(-1) < mass - 1e-12).sum(-1, keepdim=True) + 1
    last = ordered.gather(-1, (kept - 1).clamp(max=ordered.shape[-1] - 1))
    return probabilities.where(probabilities >= last, 0.0)


def draw(probabilities: Tensor, generator: Optional[torch.Generator]) -> Tensor:
    """Draws an index for each row [rows]."""
    return torch.multinomial(probabilities, 1, generator=generator)[:, 0]


def check_from_zero(name: str, value: float) -> None:
    """Raises an error unless the value is a valid temperature."""
    if not (math.isfinite(value) and value >= 0):
        raise ValueError(f"{name} must be a number from 0 up; got {value}")


def check_share(name: str, value: float) -> None:
    """Raises an error unless the value is a valid share of the mass."""
    if not 0 < value <= 1:
        raise ValueError(f"{name} must be above 0 and up to 1; got {value}")
