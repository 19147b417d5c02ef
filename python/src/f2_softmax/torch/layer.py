"""`F2Softmax`: an output layer that predicts a frequency class, and a token within the class."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Optional

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .classes import GPU_OVERHEAD, GPU_POSITIONS, check_class_ends, group_ends
from .sampling import check_from_zero, check_share, draw, truncate
from .tensors import cast, numbered, reduced, wide
from .token_nll import Tables, token_nll


class F2Output(NamedTuple):
    """The result of `F2Softmax.forward`, as for `nn.AdaptiveLogSoftmaxWithLoss`."""

    output: Tensor
    """The log-probability of each target; 0 where it is ignored."""
    loss: Tensor
    """The negative log-likelihood, reduced."""


class F2Softmax(nn.Module):
    """Frequency-factorised softmax (Choi et al., *F²-Softmax*, EMNLP 2020).

    p(token) = p(class) · p(token | class), the product of a softmax over K frequency classes and one
    over the tokens of the class. Token ids must be frequency ranks: 0 is the most frequent token. Training
    computes the logits of the targets' classes only, about 1/K of the vocabulary.

    Args:
        in_features: width of the hidden states.
        class_ends: the id after the last token of each class; the last is the vocabulary's size.
            `f2_softmax.mefmax(counts).ends` finds good ones.
        tie_weight: a parameter [vocabulary, in_features] to use as the weight, such as an embedding's weight.
        bias: whether classes and tokens have a bias; in the paper they have none.

    >>> import torch
    >>> _ = torch.manual_seed(0)
    >>> head = F2Softmax(8, class_ends=[2, 5, 12])
    >>> hidden, target = torch.randn(4, 8), torch.tensor([0, 3, 11, -100])
    >>> output, loss = head(hidden, target)
    >>> output.shape, loss.shape
    (torch.Size([4]), torch.Size([]))
    >>> posterior = head.log_prob(hidden)
    >>> torch.allclose(posterior[1, 3], output[1]), posterior.shape
    (True, torch.Size([4, 12]))
    """

    def __init__(
        self,
        in_features: int,
        class_ends: Iterable[int],
        tie_weight: Optional[nn.Parameter] = None,
        bias: bool = False,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        if in_features < 1:
            raise ValueError(f"in_features must be at least 1; got {in_features}")
        self.in_features = in_features
        self.class_ends = check_class_ends(class_ends)
        vocabulary = self.class_ends[-1]
        made = {"device": device, "dtype": dtype}
        if tie_weight is None:
            self.weight = nn.Parameter(torch.empty(vocabulary, in_features, **made))
        elif tuple(tie_weight.shape) != (vocabulary, in_features):
            raise ValueError(
                f"tie_weight has shape {list(tie_weight.shape)}; {vocabulary} tokens of width "
                f"{in_features} need [{vocabulary}, {in_features}]"
            )
        else:
            self.weight = tie_weight
            made = {"device": device or tie_weight.device, "dtype": dtype or tie_weight.dtype}
        self.class_weight = nn.Parameter(torch.empty(self.n_classes, in_features, **made))
        self.register_parameter("bias", None)
        self.register_parameter("class_bias", None)
        if bias:
            self.bias = nn.Parameter(torch.empty(vocabulary, **made))
            self.class_bias = nn.Parameter(torch.empty(self.n_classes, **made))
        self._tied = tie_weight is not None
        # Groups of classes computed together on a CPU and on a GPU.
        self._groups = [group_ends(self.class_ends, overhead, GPU_POSITIONS) for overhead in (0, GPU_OVERHEAD)]
        place = self.class_weight.device
        sizes = {
            "_class_of_token": [vocabulary],
            "_group_of_token": [2, vocabulary + 2],
            "_first_token": [2, self.n_classes + 2],
            "_borders": [self.n_classes + 3],
        }
        for name, size in sizes.items():
            self.register_buffer(name, torch.empty(size, dtype=torch.int64, device=place), False)
        self.reset_parameters()

    @classmethod
    def from_counts(
        cls,
        counts: Iterable[int],
        in_features: int,
        method: str = "greedy",
        k: Optional[int] = None,
        **options,
    ) -> F2Softmax:
        """Creates a layer whose classes MefMax chooses from the counts of each token, most frequent first.

        `method` and `k` are those of `f2_softmax.mefmax`; `options` those of the layer.

        >>> F2Softmax.from_counts([10, 9, 5, 3, 2, 1], in_features=4).class_ends
        [1, 3, 6]
        """
        from f2_softmax import mefmax

        counts = [int(count) for count in counts]
        if any(first < second for first, second in zip(counts, counts[1:])):
            raise ValueError(
                "counts must fall, since token ids are frequency ranks: rename the tokens so that "
                "0 is the most frequent one (f2_softmax.ranks gives the names)"
            )
        return cls(in_features, mefmax(counts, method=method, k=k).ends, **options)

    @property
    def n_classes(self) -> int:
        """The number of classes, K in the paper."""
        return len(self.class_ends)

    @property
    def vocabulary(self) -> int:
        """The number of tokens."""
        return self.class_ends[-1]

    def reset_parameters(self) -> None:
        """Draws vectors from N(0, 0.02), as in the paper, and sets biases to zero; a tied weight is not changed.

        Call this after `to_empty` on a layer that was created on the device `meta`, as for torch's own layers.
        """
        self._fill_tables()
        nn.init.normal_(self.class_weight, std=0.02)
        if not self._tied:
            nn.init.normal_(self.weight, std=0.02)
        for bias in (self.bias, self.class_bias):
            if bias is not None:
                nn.init.zeros_(bias)

    def _fill_tables(self) -> None:
        self._class_of_token.copy_(numbered(self.class_ends))
        self._borders.copy_(torch.arange(len(self._borders)))
        for of_token, first, groups in zip(self._group_of_token, self._first_token, self._groups):
            ends = [self.class_ends[group - 1] for group in groups]
            outside = torch.tensor([len(groups) + 1])
            of_token.copy_(torch.cat([outside, numbered(ends), outside]))
            first.zero_()
            first[: len(ends)].copy_(torch.tensor([0, *ends[:-1]]))

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, vocabulary={self.vocabulary}, classes={self.n_classes}"

    def forward(
        self,
        hidden: Tensor,
        target: Tensor,
        reduction: str = "mean",
        ignore_index: int = -100,
        weight: Optional[Tensor] = None,
    ) -> F2Output:
        """The log-probabilities of targets [...] given hidden states [..., in_features], and the loss.

        Args:
            reduction: `mean` over the targets that are not ignored, `sum`, or `none`.
            ignore_index: targets with this value are ignored.
            weight: a weight for each token [vocabulary]; the mean is then the weighted mean.

        A hidden state that is NaN gives a log-probability that is NaN, as everywhere in torch.
        """
        self._check(hidden, target, reduction, weight)
        shape = target.shape
        hidden, target = hidden.reshape(-1, self.in_features), target.reshape(-1).long()
        grouped = int(hidden.device.type != "cpu")
        groups = self._groups[grouped]
        tables = Tables(
            self._class_of_token,
            self._group_of_token[grouped],
            self._first_token[grouped],
            self._borders[: len(groups) + 3],
        )
        nll = self._class_nll(hidden, target, ignore_index) + token_nll(
            cast(hidden),
            cast(self.weight),
            self.bias,
            target,
            ignore_index,
            tables,
            self.class_ends,
            groups,
        )
        loss = reduced(nll, target, reduction, ignore_index, weight)
        return F2Output(-nll.reshape(shape), loss.reshape(shape) if reduction == "none" else loss)

    def log_prob(self, hidden: Tensor) -> Tensor:
        """The log-probabilities [..., vocabulary] of all tokens."""
        self._check_hidden(hidden)
        logits = wide(F.linear(cast(hidden), cast(self.weight)))
        if self.bias is not None:
            logits = logits + self.bias
        classes = self._class_log_prob(hidden)
        starts = [0, *self.class_ends[:-1]]
        parts = [
            classes[..., c : c + 1] + torch.log_softmax(logits[..., start:end], -1)
            for c, (start, end) in enumerate(zip(starts, self.class_ends))
        ]
        return torch.cat(parts, -1)

    @torch.no_grad()
    def predict(self, hidden: Tensor, decoupled: bool = False) -> Tensor:
        """The likeliest token [...] for each hidden state.

        With `decoupled`, the likeliest token of the likeliest class: the paper's greedy decoding,
        which is not always the likeliest token overall.
        """
        if decoupled:
            return self.sample(hidden, temperature=0.0, class_temperature=0.0)
        return self.log_prob(hidden).argmax(-1)

    @torch.no_grad()
    def sample(
        self,
        hidden: Tensor,
        k: Optional[int] = None,
        top_p: float = 1.0,
        temperature: float = 1.0,
        class_temperature: float = 1.0,
        class_top_k: Optional[int] = None,
        class_top_p: float = 1.0,
        generator: Optional[torch.Generator] = None,
        k_growth: float = 0.0,
    ) -> Tensor:
        """Draws a class, then a token [...] of that class, for each hidden state.

        Args:
            k: keeps the k likeliest tokens of the class, or all tokens of a smaller class.
            top_p: keeps the smallest set of tokens of the class that reaches this mass.
            temperature: sharpens (below 1) or flattens (above 1); 0 takes the likeliest token.
            class_temperature: the same for classes.
            class_top_k: keeps the likeliest classes.
            class_top_p: keeps the likeliest classes whose total mass does not exceed this, at least one:
                1 as in the paper's text, 0.9 as in its authors' code.
            generator: the source of randomness, on the device of the hidden states.
            k_growth: makes k grow with the size of the class: a class of n tokens keeps
                k * (n / n_min) ** k_growth of them, where n_min is the size of the smallest class. With 0, every
                class keeps k.
        """
        self._check_hidden(hidden)
        numbers = (("temperature", temperature), ("class_temperature", class_temperature), ("k_growth", k_growth))
        for name, value in numbers:
            check_from_zero(name, value)
        check_share("top_p", top_p)
        check_share("class_top_p", class_top_p)
        for name, value, most in (("k", k, self.vocabulary), ("class_top_k", class_top_k, self.n_classes)):
            if value is not None and not 1 <= value <= most:
                raise ValueError(f"{name} must be from 1 to {most}; got {value}")
        if k is None and k_growth != 0:
            raise ValueError("k_growth needs k, that of the smallest class")
        flat = hidden.reshape(-1, self.in_features)
        if not flat.isfinite().all():
            raise ValueError("hidden holds values that are no finite numbers: nothing can be drawn")
        classes = truncate(self._class_log_prob(flat), class_temperature, k=class_top_k, strict_p=class_top_p)
        chosen = draw(classes, generator)
        logits = wide(F.linear(cast(flat), cast(self.weight)))
        if self.bias is not None:
            logits = logits + self.bias
        outside = self._class_of_token != chosen[:, None]
        if k_growth != 0:
            k = self._ks(k, k_growth).to(chosen.device)[chosen]
        tokens = truncate(logits.masked_fill(outside, float("-inf")), temperature, k=k, p=top_p)
        return draw(tokens, generator).reshape(hidden.shape[:-1])

    def _ks(self, k: int, growth: float) -> Tensor:
        """The k [classes] of each class, where `k` is that of the smallest class."""
        sizes = torch.diff(torch.tensor([0, *self.class_ends], dtype=torch.float64))
        return torch.minimum(sizes, (k * (sizes / sizes.min()) ** growth + 0.5).floor()).long()

    def _class_log_prob(self, hidden: Tensor) -> Tensor:
        logits = wide(F.linear(cast(hidden), cast(self.class_weight)))
        if self.class_bias is not None:
            logits = logits + self.class_bias
        return torch.log_softmax(logits, -1)

    def _class_nll(self, hidden: Tensor, target: Tensor, ignore_index: int) -> Tensor:
        logs = self._class_log_prob(hidden)
        # Targets outside the vocabulary are refused later, when data is copied from the device.
        own = self._class_of_token[target.clamp(0, self.vocabulary - 1)]
        return -logs.gather(1, own[:, None])[:, 0].masked_fill(target == ignore_index, 0.0)

    def _check_hidden(self, hidden: Tensor) -> None:
        if not hidden.is_floating_point():
            raise TypeError(f"hidden must hold floating-point numbers; got {hidden.dtype}")
        if hidden.ndim == 0 or hidden.shape[-1] != self.in_features:
            raise ValueError(f"hidden must have shape [..., {self.in_features}]; got {list(hidden.shape)}")

    def _check(self, hidden: Tensor, target: Tensor, reduction: str, weight: Optional[Tensor]) -> None:
        self._check_hidden(hidden)
        if target.is_floating_point() or target.is_complex() or target.dtype == torch.bool:
            raise TypeError(f"target must hold integers; got {target.dtype}")
        if target.shape != hidden.shape[:-1]:
            raise ValueError(
                f"target must have shape {list(hidden.shape[:-1])}, one for each hidden state; "
                f"got {list(target.shape)}"
            )
        if reduction not in ("mean", "sum", "none"):
            raise ValueError(f"reduction must be mean, sum or none; got {reduction!r}")
        if weight is not None and tuple(weight.shape) != (self.vocabulary,):
            raise ValueError(f"weight must have shape [{self.vocabulary}]; got {list(weight.shape)}")
