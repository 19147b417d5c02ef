"""Speed of `F2Softmax` as an output layer, forward and backward.

    pip install torch
    python bench/torch_layer.py [--device cuda] [--json FILE]

compares, on random hidden states and targets of a Zipfian vocabulary,

- linear: `nn.Linear` and cross-entropy over the whole vocabulary;
- adaptive: `nn.AdaptiveLogSoftmaxWithLoss` with cutoffs at the ends of the same classes, of full width;
- gather: F² as computed by the paper's authors, in a loop that selects the positions of each class by a mask;
- f2: `F2Softmax`, and the same under `torch.compile`.

The classes are those of MefMax (Algorithm 1) for the same counts. If the wheel is not installed, the layer,
which needs only torch, is imported as the package `torch_layer_of_f2`.
"""

import argparse
import importlib.util
import json
import statistics
import sys
import time
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F


def f2_softmax_class():
    """`F2Softmax` of the source tree, without the extension module."""
    folder = Path(__file__).parents[1] / "python/src/f2_softmax/torch"
    spec = importlib.util.spec_from_file_location(
        "torch_layer_of_f2", folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    module = importlib.util.module_from_spec(spec)
    sys.modules["torch_layer_of_f2"] = module
    spec.loader.exec_module(module)
    return module.F2Softmax


def efficiency(p):
    """The entropy of shares relative to that of equal shares; 1 for a single share."""
    if len(p) == 1:
        return 1.0
    p = p[p > 0] / p.sum()
    return float(-(p * p.log()).sum()) / float(torch.tensor(float(len(p))).log())


def mefmax(p):
    """Algorithm 1 of the paper on falling shares [vocabulary]: the ends of the best classes."""
    running = p.cumsum(0)
    best, best_value = [len(p)], -1.0
    for k in range(1, int(1 / float(p[0])) + 1):
        wanted = torch.arange(1, k) / k
        ends = [*(torch.searchsorted(running, wanted) + 1).tolist(), len(p)]
        starts = [0, *ends[:-1]]
        masses = torch.stack([p[start:end].sum() for start, end in zip(starts, ends)])
        inside = [efficiency(p[start:end]) for start, end in zip(starts, ends)]
        value = efficiency(masses) + sum(inside) / k
        if value > best_value + 1e-9:
            best, best_value = ends, value
    return best


class Linear(nn.Module):
    def __init__(self, width, ends):
        super().__init__()
        self.head = nn.Linear(width, ends[-1], bias=False)

    def forward(self, hidden, target):
        return F.cross_entropy(self.head(hidden).float(), target)


class Adaptive(nn.Module):
    def __init__(self, width, ends):
        super().__init__()
        self.head = nn.AdaptiveLogSoftmaxWithLoss(width, ends[-1], ends[:-1], div_value=1.0)

    def forward(self, hidden, target):
        return self.head(hidden, target).loss


class Gather(nn.Module):
    """A loop over the classes that selects the positions of each by a mask."""

    def __init__(self, width, ends):
        super().__init__()
        self.ranges = list(zip([0, *ends[:-1]], ends))
        self.classes = nn.Linear(width, len(ends), bias=False)
        self.tokens = nn.Linear(width, ends[-1], bias=False)
        self.register_buffer("ends", torch.tensor(ends))

    def forward(self, hidden, target):
        own = torch.bucketize(target, self.ends, right=True)
        loss = F.cross_entropy(self.classes(hidden).float(), own, reduction="sum")
        for c, (start, end) in enumerate(self.ranges):
            chosen = (own == c).nonzero()[:, 0]
            if chosen.numel() > 0:
                logits = F.linear(hidden[chosen], self.tokens.weight[start:end]).float()
                loss = loss + F.cross_entropy(logits, target[chosen] - start, reduction="sum")
        return loss / target.numel()


class Ours(nn.Module):
    def __init__(self, width, ends):
        super().__init__()
        self.head = f2_softmax_class()(width, ends)

    def forward(self, hidden, target):
        return self.head(hidden, target).loss


def measure(layer, hidden, target, dtype, rounds):
    """Median milliseconds of forward and of both passes, and the largest memory of both in MiB."""
    device = hidden.device

    def synchronise():
        if device.type == "cuda":
            torch.cuda.synchronize()

    def timed(backward):
        synchronise()
        began = time.perf_counter()
        with torch.autocast(device.type, dtype, enabled=dtype != torch.float32):
            loss = layer(hidden, target)
        if backward:
            loss.backward()
        synchronise()
        elapsed = time.perf_counter() - began
        hidden.grad = None
        layer.zero_grad(set_to_none=True)
        return elapsed * 1e3

    for _ in range(5):
        timed(True)
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats()
        base = torch.cuda.memory_allocated()
    forward = statistics.median(timed(False) for _ in range(rounds))
    both = statistics.median(timed(True) for _ in range(rounds))
    memory = (torch.cuda.max_memory_allocated() - base) / 2**20 if device.type == "cuda" else None
    return {"forward_ms": forward, "both_ms": both, "memory_mib": memory}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--vocabulary", type=int, default=30_000)
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--positions", type=int, default=8_192)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--no-compile", action="store_true")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    device = torch.device(arguments.device)

    torch.manual_seed(0)
    # A Zipf-Mandelbrot vocabulary, whose most frequent token has about 5 % of all.
    p = 1 / (torch.arange(arguments.vocabulary, dtype=torch.float64) + 2.7) ** 1.0
    p /= p.sum()
    ends = mefmax(p)
    target = torch.multinomial(p, arguments.positions, replacement=True).to(device)
    hidden = torch.randn(arguments.positions, arguments.width, device=device, requires_grad=True)
    name = torch.cuda.get_device_name() if device.type == "cuda" else "cpu"
    print(f"torch {torch.__version__} on {name}: {arguments.positions} positions of width {arguments.width}, "
          f"{arguments.vocabulary} tokens in {len(ends)} classes")

    results = []
    for dtype in (torch.bfloat16, torch.float32):
        layers = {"linear": Linear, "adaptive": Adaptive, "gather": Gather, "f2": Ours}
        for kind, make in layers.items():
            torch.manual_seed(1)
            layer = make(arguments.width, ends).to(device)
            runs = [(kind, layer)]
            if kind in ("linear", "f2") and not arguments.no_compile:
                runs.append((f"{kind}, compiled", torch.compile(layer, fullgraph=True)))
            for label, run in runs:
                try:
                    result = measure(run, hidden, target, dtype, arguments.rounds)
                except Exception as error:  # one layer that cannot run must not prevent the others
                    print(f"{label}: {type(error).__name__}: {str(error)[:200]}")
                    continue
                results.append({"layer": label, "dtype": str(dtype).removeprefix("torch."), **result})
                memory = "" if result["memory_mib"] is None else f", {result['memory_mib']:.0f} MiB"
                print(f"{str(dtype):15} {label:17} forward {result['forward_ms']:8.3f} ms, "
                      f"forward and backward {result['both_ms']:8.3f} ms{memory}")
    if arguments.json:
        about = {"torch": torch.__version__, "device": name, "classes": len(ends)}
        for key in ("vocabulary", "width", "positions", "rounds"):
            about[key] = getattr(arguments, key)
        arguments.json.write_text(json.dumps({**about, "results": results}, indent=1) + "\n")


if __name__ == "__main__":
    main()
