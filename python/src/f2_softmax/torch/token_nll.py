"""The negative log-likelihood of tokens within their frequency classes, and its gradients.

Positions are sorted by groups of classes once. Each group then requires one product of a slice of the sorted hidden
states with a slice of the token vectors, so the cost is that of the targets' classes and not of the whole vocabulary.
The number of positions in each group is copied from the device once per forward pass; the backward pass copies nothing.
The gradient of the logits is computed together with the logits and stored in the precision of the hidden states.

The forward and the backward pass are custom operators, so that `torch.compile(fullgraph=True)` does not trace into
them, since sizes there depend on the targets.
"""

# Annotations must be objects, and from `typing`: torch infers the schemas of the operators from them.
from typing import Iterator, NamedTuple, Optional, Sequence, Tuple

import torch
from torch import Tensor


class Tables(NamedTuple):
    """The classes and groups of a vocabulary, on the device of the hidden states."""

    class_of_token: Tensor
    """[vocabulary]"""
    group_of_token: Tensor
    """[vocabulary + 2], of every token from -1 to the one after the last; those two are outside."""
    first_token: Tensor
    """[groups + 2], of each group; 0 for targets that are ignored and for those outside."""
    borders: Tensor
    """[groups + 3], ascending from 0."""


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
    learns = any(tensor is not None and tensor.requires_grad for tensor in (hidden, weight, bias))
    learns = learns and torch.is_grad_enabled()
    nll, *_ = _forward(hidden, weight, bias, target, ignore_index, *tables, ends, groups, learns)
    return nll


@torch.library.custom_op("f2_softmax::token_nll", mutates_args=())
def _forward(
    hidden: Tensor,
    weight: Tensor,
    bias: Optional[Tensor],
    target: Tensor,
    ignore_index: int,
    class_of_token: Tensor,
    group_of_token: Tensor,
    first_token: Tensor,
    borders: Tensor,
    ends: Sequence[int],
    groups: Sequence[int],
    learns: bool,
) -> Tuple[Tensor, Tensor, Tensor, Tensor]:
    """The likelihoods; the gradients of all logits, group by group, if gradients are required; the positions in
    the order of their groups; and, on the host, the start and end of each group's positions."""
    order, group, places = _sort(target, ignore_index, group_of_token, borders)
    target, rows = target[order], hidden[order]
    columns = (target - first_token[group])[:, None]
    classes = class_of_token[target.clamp(0, ends[-1] - 1)][:, None]
    dtype = torch.promote_types(hidden.dtype, torch.float32)
    logs = hidden.new_zeros(target.shape, dtype=dtype)
    minus_one = hidden.new_full((1, 1), -1, dtype=dtype)
    parts = list(_groups(places, ends, groups))
    delta = hidden.new_empty(sum(part.logits for part in parts) if learns else 0)
    for part in parts:
        own = columns[part.rows]
        logits = rows[part.rows] @ weight[part.tokens].T
        if bias is not None:
            logits = logits.to(dtype) + bias[part.tokens]
        if part.classes > 1:
            logits.masked_fill_(class_of_token[part.tokens] != classes[part.rows], float("-inf"))
        logits = torch.log_softmax(logits, 1, dtype=dtype)
        torch.gather(logits, 1, own, out=logs[part.rows, None])
        if learns:
            # The probabilities, minus one at the target.
            logits.exp_().scatter_add_(1, own, minus_one.expand_as(own))
            part.of(delta).copy_(logits)
    nll = torch.empty_like(logs).index_copy_(0, order, logs.neg_())
    return nll, delta, order, places


@_forward.register_fake
def _(hidden, weight, bias, target, ignore_index, classes, of_token, first, borders, ends, groups, learns):
    nll = hidden.new_empty(target.shape, dtype=torch.promote_types(hidden.dtype, torch.float32))
    delta = hidden.new_empty(torch.library.get_ctx().new_dynamic_size() if learns else 0)
    places = torch.empty(len(groups) + 1, dtype=torch.int64, device="cpu")
    return nll, delta, torch.empty_like(target, dtype=torch.int64), places


@torch.library.custom_op("f2_softmax::token_nll_backward", mutates_args=())
def _backward(
    grad: Tensor,
    hidden: Tensor,
    weight: Tensor,
    bias: Optional[Tensor],
    delta: Tensor,
    order: Tensor,
    places: Tensor,
    ends: Sequence[int],
    groups: Sequence[int],
) -> Tuple[Tensor, Tensor, Tensor]:
    """Gradients of hidden states, token vectors and bias; the last is empty without a bias."""
    scale = grad[order, None]
    # The gradient of each position is applied once, to its hidden state for the gradient of the vectors and to the
    # product with the vectors for the gradient of the hidden state, instead of to every logit.
    scaled = (hidden[order] * scale).to(hidden.dtype)
    rows, grad_weight = torch.zeros_like(hidden), torch.zeros_like(weight)
    grad_bias = weight.new_empty(0) if bias is None else torch.zeros_like(bias)
    for part in _groups(places, ends, groups):
        logits = part.of(delta)
        torch.mm(logits, weight[part.tokens], out=rows[part.rows])
        torch.mm(logits.T, scaled[part.rows], out=grad_weight[part.tokens])
        if bias is not None:
            grad_bias[part.tokens] = (logits * scale[part.rows]).sum(0).to(bias.dtype)
    grad_hidden = torch.empty_like(hidden)
    grad_hidden.index_copy_(0, order, (rows * scale).to(hidden.dtype))
    return grad_hidden, grad_weight, grad_bias


@_backward.register_fake
def _(grad, hidden, weight, bias, delta, order, places, ends, groups):
    grad_bias = weight.new_empty(0) if bias is None else torch.empty_like(bias)
    return torch.empty_like(hidden), torch.empty_like(weight), grad_bias


def _setup_context(ctx, inputs, output):
    hidden, weight, bias = inputs[:3]
    ctx.ends, ctx.groups = inputs[9:11]
    _, delta, order, places = output
    ctx.mark_non_differentiable(delta, order, places)
    ctx.has_bias = bias is not None
    ctx.save_for_backward(hidden, weight, bias, delta, order, places)


def _differentiate(ctx, grad, *_):
    grads = _backward(grad.contiguous(), *ctx.saved_tensors, ctx.ends, ctx.groups)
    return grads[0], grads[1], grads[2] if ctx.has_bias else None, *[None] * 9


_forward.register_autograd(_differentiate, setup_context=_setup_context)


def _sort(
    target: Tensor, ignore_index: int, group_of_token: Tensor, borders: Tensor
) -> Tuple[Tensor, Tensor, Tensor]:
    """The positions in the order of their groups, the group of each, and, on the host, the start of each group."""
    vocabulary, groups = group_of_token.shape[0] - 2, borders.shape[0] - 3
    group = group_of_token[target.clamp(-1, vocabulary) + 1]
    group, order = torch.where(target == ignore_index, groups, group).sort(stable=True)
    # The only copy from the device: the start of the positions of each group, of those without a target, and of
    # those whose target is not a token.
    places = torch.searchsorted(group, borders).cpu()
    if places[-2] < places[-1]:
        wrong = target[order[-1]].item()
        raise ValueError(
            f"target {wrong} is not a token id: they go from 0 to {vocabulary - 1}, "
            f"and ignore_index is {ignore_index}"
        )
    return order, group, places[: groups + 1].clone()


class _Group(NamedTuple):
    """A group of classes with at least one position."""

    rows: slice
    """Its positions, of the sorted ones."""
    tokens: slice
    """Its part of the vocabulary."""
    classes: int
    """How many it has."""
    start: int
    """Where its logits begin among those of all groups."""

    @property
    def logits(self) -> int:
        return (self.rows.stop - self.rows.start) * (self.tokens.stop - self.tokens.start)

    def of(self, logits: Tensor) -> Tensor:
        """Its part [positions, tokens] of the logits of all groups."""
        return logits[self.start : self.start + self.logits].view(self.rows.stop - self.rows.start, -1)


def _groups(places: Tensor, ends: Sequence[int], groups: Sequence[int]) -> Iterator[_Group]:
    bounds, start, first = places.tolist(), 0, 0
    for begin, end, last in zip(bounds, bounds[1:], groups):
        if begin < end:
            tokens = slice(ends[first - 1] if first else 0, ends[last - 1])
            group = _Group(slice(begin, end), tokens, last - first, start)
            yield group
            start += group.logits
        first = last
