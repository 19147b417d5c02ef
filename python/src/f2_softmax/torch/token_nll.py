"""The negative log-likelihood of tokens inside their frequency classes, and its gradients.

Positions are sorted by class once. Each group of classes is then one product of a slice of the
sorted hidden states with a slice of the token vectors, so the work is that of the targets' classes
and not of the whole vocabulary. How many positions each group has is read from the device once per
forward pass; the backward pass reads nothing. Logits are not stored but computed again for the
gradients.

Both directions are operators of their own, so that `torch.compile(fullgraph=True)` does not look
inside, where sizes depend on the targets.
"""

# Annotations stay objects, and of `typing`: from them torch infers the schemas of the operators.
from typing import Iterator, NamedTuple, Optional, Sequence, Tuple

import torch
from torch import Tensor


class Tables(NamedTuple):
    """The classes of a vocabulary, on the device of the hidden states."""

    class_of_token: Tensor
    """[vocabulary]"""
    group_of_class: Tensor
    """[classes]"""


def token_nll(
    hidden: Tensor,
    weight: Tensor,
    bias: Optional[Tensor],
    target: Tensor,
    ignore_index: int,
    tables: Tables,
    ends: Sequence[int],
    groups: Sequence[int],
) -> Tensor:
    """-log p(target | class of target), one for each position; 0 where the target is ignored.

    hidden [positions, width], weight [vocabulary, width], bias [vocabulary], target [positions].
    `ends` are those of the classes, in tokens; `groups` those of the groups, in classes.
    """
    nll, *_ = _forward(hidden, weight, bias, target, ignore_index, *tables, ends, groups)
    return nll


@torch.library.custom_op("f2_softmax::token_nll", mutates_args=())
def _forward(
    hidden: Tensor,
    weight: Tensor,
    bias: Optional[Tensor],
    target: Tensor,
    ignore_index: int,
    class_of_token: Tensor,
    group_of_class: Tensor,
    ends: Sequence[int],
    groups: Sequence[int],
) -> Tuple[Tensor, Tensor, Tensor, Tensor]:
    """The likelihoods; the logarithm of each position's normaliser, the positions in the order of
    their classes, and on the host how many positions each group has."""
    order, sizes = _sort(target, ignore_index, class_of_token, group_of_class, len(groups))
    dtype = torch.promote_types(hidden.dtype, torch.float32)
    nll = hidden.new_zeros(target.shape, dtype=dtype)
    normaliser = hidden.new_zeros(target.shape, dtype=dtype)
    for group in _groups(hidden, weight, bias, target, order, sizes, class_of_token, ends, groups):
        logs = group.logits.logsumexp(1)
        normaliser[group.positions] = logs
        nll[group.positions] = logs - group.logits.gather(1, group.columns)[:, 0]
    return nll, normaliser, order, sizes


@_forward.register_fake
def _(hidden, weight, bias, target, ignore_index, class_of_token, group_of_class, ends, groups):
    dtype = torch.promote_types(hidden.dtype, torch.float32)
    nll = hidden.new_empty(target.shape, dtype=dtype)
    sizes = torch.empty(len(groups), dtype=torch.int64, device="cpu")
    return nll, torch.empty_like(nll), torch.empty_like(target, dtype=torch.int64), sizes


@torch.library.custom_op("f2_softmax::token_nll_backward", mutates_args=())
def _backward(
    grad: Tensor,
    hidden: Tensor,
    weight: Tensor,
    bias: Optional[Tensor],
    target: Tensor,
    normaliser: Tensor,
    order: Tensor,
    sizes: Tensor,
    class_of_token: Tensor,
    ends: Sequence[int],
    groups: Sequence[int],
) -> Tuple[Tensor, Tensor, Tensor]:
    """Gradients of hidden states, token vectors and bias; the last is empty without a bias."""
    grad_hidden, grad_weight = torch.zeros_like(hidden), torch.zeros_like(weight)
    grad_bias = weight.new_empty(0) if bias is None else torch.zeros_like(bias)
    for group in _groups(hidden, weight, bias, target, order, sizes, class_of_token, ends, groups):
        # The gradient of the logits: probabilities less the target, times the outer gradient.
        delta = group.logits.sub_(normaliser[group.positions, None]).exp_()
        delta.scatter_add_(1, group.columns, delta.new_full((), -1).expand_as(group.columns))
        delta.mul_(grad[group.positions, None])
        if bias is not None:
            grad_bias[group.tokens] = delta.sum(0).to(bias.dtype)
        delta = delta.to(hidden.dtype)
        grad_hidden[group.positions] = delta @ weight[group.tokens]
        torch.mm(delta.T, group.hidden, out=grad_weight[group.tokens])
    return grad_hidden, grad_weight, grad_bias


@_backward.register_fake
def _(grad, hidden, weight, bias, target, normaliser, order, sizes, class_of_token, ends, groups):
    grad_bias = weight.new_empty(0) if bias is None else torch.empty_like(bias)
    return torch.empty_like(hidden), torch.empty_like(weight), grad_bias


def _setup_context(ctx, inputs, output):
    hidden, weight, bias, target, _, class_of_token, _, ctx.ends, ctx.groups = inputs
    _, normaliser, order, sizes = output
    ctx.mark_non_differentiable(normaliser, order, sizes)
    ctx.has_bias = bias is not None
    ctx.save_for_backward(hidden, weight, bias, target, normaliser, order, sizes, class_of_token)


def _differentiate(ctx, grad, *_):
    grads = _backward(grad.contiguous(), *ctx.saved_tensors, ctx.ends, ctx.groups)
    return grads[0], grads[1], grads[2] if ctx.has_bias else None, *[None] * 6


_forward.register_autograd(_differentiate, setup_context=_setup_context)


def _sort(
    target: Tensor, ignore_index: int, class_of_token: Tensor, group_of_class: Tensor, groups: int
) -> Tuple[Tensor, Tensor]:
    """Positions in the order of their groups, and the sizes of the groups on the host."""
    vocabulary = class_of_token.shape[0]
    ignored = target == ignore_index
    outside = ~ignored & ((target < 0) | (target >= vocabulary))
    group = group_of_class[class_of_token[target.clamp(0, vocabulary - 1)]]
    group = torch.where(ignored, groups, torch.where(outside, groups + 1, group))
    group, order = group.sort(stable=True)
    # The only read of the device: how many positions each group has, and how many are no tokens.
    # A histogram would read it once more, to find the largest group.
    borders = torch.arange(groups + 3, device=target.device)
    sizes = torch.searchsorted(group, borders).diff().cpu()
    if sizes[-1] > 0:
        wrong = target[outside][0].item()
        raise ValueError(
            f"target {wrong} is not a token id: they go from 0 to {vocabulary - 1}, "
            f"and ignore_index is {ignore_index}"
        )
    return order, sizes[:groups].clone()


class _Group:
    """The positions of a group of classes.

    positions [n]: their places; hidden [n, width]; tokens: the slice of the vocabulary; columns
    [n, 1]: their targets inside the slice; logits [n, tokens]: in single precision or more, -inf
    outside each position's class.
    """

    __slots__ = ("positions", "hidden", "tokens", "columns", "logits")


def _groups(
    hidden, weight, bias, target, order, sizes, class_of_token, ends, groups
) -> Iterator[_Group]:
    first_class, place = 0, 0
    for end_class, size in zip(groups, sizes.tolist()):
        if size > 0:
            group = _Group()
            start = ends[first_class - 1] if first_class else 0
            group.tokens = slice(start, ends[end_class - 1])
            group.positions = order[place : place + size]
            group.hidden = hidden[group.positions]
            targets = target[group.positions]
            group.columns = targets[:, None] - start
            logits = group.hidden @ weight[group.tokens].T
            logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
            if bias is not None:
                logits = logits + bias[group.tokens]
            if end_class - first_class > 1:
                other = class_of_token[group.tokens] != class_of_token[targets][:, None]
                logits = logits.masked_fill_(other, float("-inf"))
            group.logits = logits
            yield group
        first_class, place = end_class, place + size
