"""Helpers on tensors: precision, reduction to a loss, and class indices."""

from __future__ import annotations

from typing import Optional

import torch
from torch import Tensor


def numbered(ends: list[int]) -> Tensor:
    """The class index of each token: 0 up to the first end, then 1, and so on."""
    ends = torch.tensor(ends)
    return torch.repeat_interleave(torch.arange(len(ends)), ends.diff(prepend=ends.new_zeros(1)))


def reduced(
    nll: Tensor, target: Tensor, reduction: str, ignore_index: int, weight: Optional[Tensor]
) -> Tensor:
    """The loss over all positions, each with the weight of its target."""
    weights = (target != ignore_index).to(nll.dtype)
    if weight is not None:
        weights = weights * weight.to(nll.dtype)[target.clamp(0, weight.shape[0] - 1)]
        nll = nll * weights
    if reduction == "none":
        return nll
    return nll.sum() / weights.sum() if reduction == "mean" else nll.sum()


def cast(tensor: Tensor) -> Tensor:
    """The tensor in the precision of autocast, if enabled."""
    kind = tensor.device.type
    if torch.is_autocast_enabled(kind) and tensor.dtype != torch.float64:
        return tensor.to(torch.get_autocast_dtype(kind))
    return tensor


def wide(tensor: Tensor) -> Tensor:
    """The tensor in at least single precision, as used for softmaxes."""
    return tensor.to(torch.promote_types(tensor.dtype, torch.float32))
