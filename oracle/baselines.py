"""Reference values of the baselines from PyTorch, on the decoder of decoder.py: loss and every gradient
of one step of unlikelihood, of its sequence step, and of FACE in its four variants.

    pip install torch numpy
    python oracle/baselines.py crates/f2-lm/tests/fixtures

reads decoder.safetensors, written by decoder.py, and writes baselines.safetensors (gradients) and baselines.json
(losses, settings). The sequence step keeps the graph of every greedy choice it makes, one token at a time, without a
cache and without a second pass.
"""

import json
import struct
import sys
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

from decoder import BATCH, SEQUENCE, VOCABULARY, hidden_states, save_safetensors

ALPHA, PREFIX, CONTINUATION, NGRAM = 0.7, 2, 4, 1
FACE = ["opr", "opo", "gpr", "gpo"]


def load_safetensors(path):
    raw = path.read_bytes()
    length = struct.unpack("<Q", raw[:8])[0]
    kinds = {"F32": np.float32, "U32": np.uint32}
    tensors = {}
    for name, about in json.loads(raw[8 : 8 + length]).items():
        start, end = (8 + length + offset for offset in about["data_offsets"])
        tensors[name] = np.frombuffer(raw[start:end], kinds[about["dtype"]]).reshape(about["shape"])
    return tensors


def log_probabilities(w, tokens):
    return F.log_softmax(F.linear(hidden_states(w, tokens), w["head.tokens"]), -1)


def unlikelihood(w, window):
    log_p = log_probabilities(w, window[:, :-1])
    targets = window[:, 1:]
    loss = F.nll_loss(log_p.flatten(0, 1), targets.flatten(), reduction="sum")
    for row in range(BATCH):
        for place in range(SEQUENCE):
            earlier = set(targets[row, :place].tolist()) - {targets[row, place].item()}
            for candidate in earlier:
                rest = 1 - log_p[row, place, candidate].exp()
                loss = loss - ALPHA * rest.clamp(min=1e-5).log()
    return loss / targets.numel()


def repeated(tokens):
    """Positions inside an n-gram that occurred before; the last n-gram is never examined."""
    seen, places = set(), set()
    for start in range(len(tokens) - NGRAM):
        gram = tuple(tokens[start : start + NGRAM])
        if gram in seen:
            places |= set(range(start, start + NGRAM))
        seen.add(gram)
    return places


def sequence(w, window):
    count = SEQUENCE // (PREFIX + CONTINUATION)
    tokens = window[0, : count * PREFIX].reshape(count, PREFIX)
    chosen = []
    for _ in range(CONTINUATION):
        log_p = log_probabilities(w, tokens)[:, -1]
        choice = log_p.argmax(-1)
        chosen.append(log_p.gather(1, choice[:, None])[:, 0])
        tokens = torch.cat([tokens, choice[:, None]], 1)
    loss, penalised = torch.zeros(()), 0
    for row in range(count):
        for place in repeated(tokens[row, PREFIX:].tolist()):
            loss = loss - (1 - chosen[place][row].exp()).clamp(min=1e-20).log()
            penalised += 1
    assert penalised > 0, "nothing repeats: the case says nothing"
    return loss / (count * CONTINUATION)


def face(variant):
    def loss(w, window):
        log_p = log_probabilities(w, window[:, :-1]).flatten(0, 1)
        targets = window[:, 1:].flatten()
        predictions = log_p.argmax(-1)
        counted = predictions if variant[0] == "o" else targets
        counts = torch.bincount(counted, minlength=VOCABULARY).double()
        if variant[2] == "r":
            weights = 1 - counts / counts.max()
            weights = (weights / weights.sum() * VOCABULARY)[targets]
        else:
            weights = 1 + (counts[predictions] - counts[targets]).clamp(min=0) / counts.sum()
        return (weights * F.nll_loss(log_p, targets, reduction="none")).mean()

    return loss


def main(folder):
    torch.set_default_dtype(torch.float64)
    frozen = load_safetensors(folder / "decoder.safetensors")
    start = {name[7:]: torch.tensor(v).double() for name, v in frozen.items() if name.startswith("weight/")}
    stream = torch.tensor(frozen["tokens"].astype(np.int64))
    window = torch.stack([stream[row * SEQUENCE :][: SEQUENCE + 1] for row in range(BATCH)])
    objectives = {"unlikelihood": unlikelihood, "unlikelihood-sequence": sequence}
    objectives |= {f"face-{variant}": face(variant) for variant in FACE}
    losses, tensors = {}, {}
    for name, objective in objectives.items():
        w = {key: value.clone().requires_grad_() for key, value in start.items()}
        loss = objective(w, window)
        loss.backward()
        losses[name] = loss.item()
        # Only the gradients of the first variant are stored: the variants differ only in the weights.
        if name in ["unlikelihood", "unlikelihood-sequence", "face-opr"]:
            grads = {key: v.grad for key, v in w.items() if v.grad is not None}
            tensors |= {f"{name}/{key}": grad.float().numpy() for key, grad in grads.items()}
    save_safetensors(folder / "baselines.safetensors", tensors)
    settings = dict(alpha=ALPHA, prefix=PREFIX, continuation=CONTINUATION, ngram=NGRAM)
    about = dict(torch=torch.__version__, unlikelihood=settings, losses=losses)
    (folder / "baselines.json").write_text(json.dumps(about, indent=1) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
