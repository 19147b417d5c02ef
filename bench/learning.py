"""Compares learning with PyTorch: the same model, text, schedule and number of tokens.

    f2 train CORPUS --out RUN --objective f2 --preset demo --steps 2000
    python bench/learning.py CORPUS RUN

needs `pip install torch numpy`. Reads every setting from RUN/config.toml, trains in PyTorch with its own order of
windows and initial weights, scores the same validation windows, and prints both perplexities. The exit code is 1 if the
perplexity of f2 is more than 2 % above PyTorch's.
"""

import argparse
import json
import math
import os
import struct
import sys
import time
import tomllib
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

sys.path.insert(0, str(Path(__file__).parent))
from torch_gpt import GPT, f2_gather, mle  # noqa: E402

HEADER = 64


def tokens(path):
    """The ids of a shard: a header of 64 bytes, then two or four bytes for each id."""
    content = path.read_bytes()
    width, count = struct.unpack_from("<I", content, 12)[0], struct.unpack_from("<Q", content, 16)[0]
    ids = np.frombuffer(content, {2: "<u2", 4: "<u4"}[width], count, HEADER)
    return torch.from_numpy(ids.astype(np.int64))


def learning_rate(config, step, steps):
    o, s = config["optimiser"], config["schedule"]
    warmup, floor = s["warmup_steps"], s["final_fraction"]
    if step < warmup:
        return o["learning_rate"] * (step + 1) / warmup
    done = (step - warmup) / (steps - warmup)
    fall = {"constant": 1.0, "linear": 1 - done, "cosine": 0.5 + 0.5 * math.cos(math.pi * done)}[s["shape"]]
    return o["learning_rate"] * (1.0 if s["shape"] == "constant" else floor + (1 - floor) * fall)


def perplexity(model, loss, text, sequence, most):
    """Windows without overlap, the first token of each not scored; the full posterior."""
    text = text[: most or len(text)]
    total = count = 0
    model.eval()
    with torch.no_grad():
        for start in range(0, len(text), sequence):
            window = text[None, start : start + sequence]
            scored = window.shape[1] - 1
            if scored:
                total += loss(model, model.trunk(window[:, :-1]), window[:, 1:].reshape(-1)).item() * scored
                count += scored
    model.train()
    return math.exp(total / count)


def train(config, cut, train_text, valid_text, steps):
    m, b, o = config["model"], config["batch"], config["optimiser"]
    sequence = b["sequence"]
    model = GPT(m["vocabulary"], sequence, m["layers"], m["width"], m["heads"], m["feed_forward"], m["dropout"], cut)
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):
            torch.nn.init.zeros_(parameter)
    matrices = [p for p in model.parameters() if p.dim() == 2]
    others = [p for p in model.parameters() if p.dim() < 2]
    groups = [{"params": matrices, "weight_decay": o["weight_decay"]}, {"params": others, "weight_decay": 0.0}]
    adam = torch.optim.AdamW(groups, betas=(o["beta1"], o["beta2"]), eps=o["epsilon"])
    loss = f2_gather if cut else mle
    windows = (len(train_text) - 1) // sequence
    order = torch.cat([torch.randperm(windows) for _ in range(steps * b["size"] // windows + 2)])
    shown = time.time()
    for step in range(steps):
        starts = order[step * b["size"] : (step + 1) * b["size"]] * sequence
        batch = torch.stack([train_text[start : start + sequence + 1] for start in starts.tolist()])
        for group in adam.param_groups:
            group["lr"] = learning_rate(config, step, steps)
        value = loss(model, model.trunk(batch[:, :-1]), batch[:, 1:].reshape(-1))
        adam.zero_grad(set_to_none=True)
        value.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), o["clip"] or math.inf)
        adam.step()
        if time.time() - shown > 20:
            shown = time.time()
            print(f"PyTorch: step {step + 1}/{steps}, loss {value.item():.3f}", file=sys.stderr, flush=True)
    return perplexity(model, loss, valid_text, sequence, config["evaluation"]["max_tokens"])


def last_evaluation(run):
    events = [json.loads(line) for line in (run / "events.jsonl").read_text().splitlines()]
    return [event for event in events if event["event"] == "evaluated"][-1]


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("corpus", type=Path)
    arguments.add_argument("run", type=Path)
    arguments.add_argument("--threads", type=int, default=os.cpu_count())
    a = arguments.parse_args()
    torch.set_num_threads(a.threads)
    config = tomllib.loads((a.run / "config.toml").read_text())
    torch.manual_seed(config["seed"])
    ours = last_evaluation(a.run)
    cut = None
    if config["objective"]["name"] == "f2":
        classes = a.run / "checkpoints" / f"step-{ours['step']}" / "classes.json"
        cut = [0, *json.loads(classes.read_text())["ends"]]
    theirs = train(config, cut, tokens(a.corpus / "train.bin"), tokens(a.corpus / "valid.bin"), ours["step"])
    ratio = ours["perplexity"] / theirs
    print(json.dumps(dict(objective=config["objective"]["name"], steps=ours["step"], ours=ours["perplexity"], torch=theirs, ratio=ratio)))
    sys.exit(ratio > 1.02)


if __name__ == "__main__":
    main()
