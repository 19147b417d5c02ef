"""Classes of two levels in PyTorch: do groups of classes above the classes bring texts closer to human text?

    f2 demo --out demo --steps 1        # prepares the built-in text
    python bench/two_levels.py target/release/f2 demo/stages/prepare-*/corpus --levels 48:7 96:10 --seeds 1 2

needs `pip install torch numpy`. For each K:S the demo's decoder is trained twice with the same initial weights,
order of the text, dropout, optimiser and steps: with one level, p(class) · p(token | class) for K classes of
`f2 classes`, and with two, p(group) · p(class | group) · p(token | class), where S groups of about equal mass
contain the same K classes. Both then continue the prefixes of the paper's protocol: a group and a class are drawn,
then one of the k likeliest tokens of the class. Prints validation perplexity and the metrics of `f2 eval` on the
token ids, mean ± standard deviation over the seeds. Models and their texts are kept in --out; an interrupted command
continues from there.
"""

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import torch
import torch.nn as nn
import torch.nn.functional as F

sys.path.insert(0, str(Path(__file__).parent))
from learning import learning_rate, perplexity, tokens  # noqa: E402
from torch_gpt import GPT  # noqa: E402

# The settings of the demo: its preset, as modified by its plan.
MODEL = dict(layers=4, width=128, heads=4, feed_forward=512, dropout=0.1)
BATCH, SEQUENCE = 12, 160
CONFIG = {
    "optimiser": {"learning_rate": 1e-3},
    "schedule": {"warmup_steps": 100, "final_fraction": 0.1, "shape": "cosine"},
}
STREAMS, PREFIX, CONTINUATION = 256, 50, 100
# Decoding: temperatures of groups and of classes, number of classes kept in a group (0: all), by name and level.
ONE = {"": (1, 1, 0), ", classes at T": (1, None, 0)}
TWO = {
    "": (1, 1, 0),
    ", groups at T": (None, 1, 0),
    ", classes at T": (1, None, 0),
    ", both at T": (None, None, 0),
    ", k classes": (1, 1, 1),
}


class Head:
    """The assignment of classes to groups, and log-probabilities of a class or a token given the level above."""

    def __init__(self, ends, group_ends):
        self.cut, self.groups = [0, *ends], [0, *group_ends]
        sizes = torch.tensor(self.cut[1:]) - torch.tensor(self.cut[:-1])
        self.class_of_token = torch.repeat_interleave(torch.arange(len(ends)), sizes)
        sizes = torch.tensor(self.groups[1:]) - torch.tensor(self.groups[:-1])
        self.group_of_class = torch.repeat_interleave(torch.arange(len(group_ends)), sizes)

    def within(self, logits):
        """Log-probabilities of classes [rows, K] given their group."""
        parts = logits.split([b - a for a, b in zip(self.groups, self.groups[1:])], 1)
        return torch.cat([F.log_softmax(part, 1) for part in parts], 1)

    def loss(self, model, hidden, target):
        hidden, target = hidden.reshape(-1, hidden.shape[-1]), target.reshape(-1)
        classes = self.class_of_token[target]
        above = self.within(model.cls(hidden)).gather(1, classes[:, None]).sum()
        if model.group:
            groups = self.group_of_class[classes]
            above = above + F.log_softmax(model.group(hidden), 1).gather(1, groups[:, None]).sum()
        total = -above
        order = classes.argsort()
        start = 0
        for number, count in enumerate(classes.bincount(minlength=len(self.cut) - 1).tolist()):
            if count:
                low, high = self.cut[number], self.cut[number + 1]
                rows = order[start : start + count]
                logits = F.linear(hidden[rows], model.head.weight[low:high])
                total = total + F.cross_entropy(logits, target[rows] - low, reduction="sum")
                start += count
        return total / target.numel()

    def draw(self, model, hidden, k, way, temperature, generator):
        """A token for each row."""
        group_temperature, class_temperature, few = way
        logits = model.cls(hidden)
        if model.group:
            scaled = model.group(hidden) / (group_temperature or temperature)
            group = torch.multinomial(scaled.softmax(1), 1, generator=generator)
            logits = logits.masked_fill(self.group_of_class != group, -math.inf)
            if few:
                logits = keep(logits, k)
        scaled = logits / (class_temperature or temperature)
        drawn = torch.multinomial(scaled.softmax(1), 1, generator=generator)
        logits = keep(model.head(hidden).masked_fill(self.class_of_token != drawn, -math.inf), k)
        return torch.multinomial(logits.softmax(1), 1, generator=generator)


def keep(logits, k):
    least = logits.topk(min(k, logits.shape[1]), 1).values[:, -1:]
    return logits.masked_fill(logits < least, -math.inf)


def advance(model, ids, past):
    """The hidden state at the last position of `ids`, given the cached keys and values `past` of every block."""
    begin = past[0][0].shape[2] if past else 0
    x = model.wte(ids) + model.wpe.weight[begin : begin + ids.shape[1]]
    rows, length, width = x.shape
    now = []
    for number, block in enumerate(model.blocks):
        parts = block.qkv(block.ln1(x)).split(width, 2)
        q, k, v = (part.view(rows, length, block.h, -1).transpose(1, 2) for part in parts)
        if past:
            k, v = torch.cat([past[number][0], k], 2), torch.cat([past[number][1], v], 2)
        now.append((k, v))
        seen = F.scaled_dot_product_attention(q, k, v, is_causal=not past)
        x = x + block.o(seen.transpose(1, 2).reshape(rows, length, width))
        x = x + block.f2(F.gelu(block.f1(block.ln2(x)), approximate="tanh"))
    return model.lnf(x[:, -1]), now


@torch.no_grad()
def write(model, head, prefixes, k, way, temperature, seed):
    generator = torch.Generator().manual_seed(seed)
    model.eval()
    ids, past, written = prefixes, None, []
    for _ in range(CONTINUATION):
        hidden, past = advance(model, ids, past)
        ids = head.draw(model, hidden, k, way, temperature, generator)
        written.append(ids)
    return torch.cat(written, 1)


def train(a, text, head, groups, seed):
    torch.manual_seed(seed)
    m = MODEL
    model = GPT(a.vocabulary, SEQUENCE, m["layers"], m["width"], m["heads"], m["feed_forward"], m["dropout"], head.cut)
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):
            nn.init.zeros_(parameter)
    model.group = None
    if groups:
        # Drawn separately, so that all other weights and the dropout are the same as with one level.
        model.group = nn.Linear(m["width"], groups, bias=False)
        nn.init.normal_(model.group.weight, std=0.02, generator=torch.Generator().manual_seed(seed))
    torch.manual_seed(seed)
    matrices = [p for p in model.parameters() if p.dim() == 2]
    others = [p for p in model.parameters() if p.dim() < 2]
    adam = torch.optim.AdamW([{"params": matrices, "weight_decay": 0.01}, {"params": others, "weight_decay": 0.0}])
    windows = (len(text) - 1) // SEQUENCE
    order = torch.cat([torch.randperm(windows) for _ in range(a.steps * BATCH // windows + 2)])
    begun = time.time()
    for step in range(a.steps):
        starts = order[step * BATCH : (step + 1) * BATCH] * SEQUENCE
        batch = torch.stack([text[start : start + SEQUENCE + 1] for start in starts.tolist()])
        for group in adam.param_groups:
            group["lr"] = learning_rate(CONFIG, step, a.steps)
        loss = head.loss(model, model.trunk(batch[:, :-1]), batch[:, 1:])
        adam.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        adam.step()
    return model, time.time() - begun


def equal_mass(masses, groups):
    """The ends of groups of classes: a group ends where the cumulative mass reaches its share."""
    ends, so_far = [], 0.0
    for number, mass in enumerate(masses, 1):
        so_far += mass
        if so_far >= (len(ends) + 1) / groups * sum(masses) and len(ends) < groups - 1:
            ends.append(number)
    return [*ends, len(masses)]


def cut_windows(text):
    """The windows of the paper's protocol: prefixes and their human continuations."""
    piece = len(text) // STREAMS
    starts = [stream * piece + window * (PREFIX + CONTINUATION)
              for stream in range(STREAMS) for window in range(piece // (PREFIX + CONTINUATION))]
    windows = torch.stack([text[start : start + PREFIX + CONTINUATION] for start in starts])
    return windows[:, :PREFIX], windows[:, PREFIX:]


def save(path, texts):
    path.write_text("".join(json.dumps({"ids": ids}) + "\n" for ids in texts.tolist()))


def values(scores):
    shares = [*scores["ms_jaccard"], scores["self_bleu"][1], scores["distinct"][0], scores["rep"]]
    return [scores["kld"], *(100 * share for share in shares), scores["uniq"]]


def measure(a, classes, number, groups, seed, data):
    """Perplexity of one model, and the metrics for every decoding method."""
    name = f"K{number}-S{groups}-steps-{a.steps}-seed-{seed}"
    record = a.out / f"{name}.json"
    if record.exists():
        return json.loads(record.read_text())
    group_ends = equal_mass([part["mass"] for part in classes["classes"]], groups) if groups else [number]
    head = Head(classes["ends"], group_ends)
    model, seconds = train(a, data["train"], head, groups, seed)
    found = perplexity(model, head.loss, data["valid"], SEQUENCE, 0)
    files, names = [], []
    for way, setting in (TWO if groups else ONE).items():
        for sample in range(a.samples):
            files.append(a.out / f"{name}-{len(names)}.jsonl")
            names.append(way)
            save(files[-1], write(model, head, data["prefixes"], a.k, setting, a.temperature, 1000 * seed + sample))
    command = [a.program, "eval", "--hyps", *files, "--refs", a.out / "human.jsonl", "--json"]
    scores = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE).stdout)
    texts = {way: [values(one) for one, other in zip(scores, names) if other == way] for way in names}
    texts = {way: [statistics.mean(column) for column in zip(*rows)] for way, rows in texts.items()}
    result = dict(perplexity=found, seconds=seconds, groups=group_ends, texts=texts)
    record.write_text(json.dumps(result))
    print(f"{name}: {seconds:.0f} s, validation perplexity {found:.2f}", file=sys.stderr, flush=True)
    return result


def spread(numbers, digits):
    return f"{statistics.mean(numbers):.{digits}f}" + (f" ± {statistics.stdev(numbers):.{digits}f}" if len(numbers) > 1 else "")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=Path)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--levels", nargs="+", default=["48:7", "96:10"], metavar="K:S")
    parser.add_argument("--method", default="greedy", help="of `f2 classes`")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--samples", type=int, default=2, help="texts of each prefix, scored apart")
    parser.add_argument("--k", type=int, default=3)
    parser.add_argument("--temperature", type=float, default=0.7, help="the T of groups and classes")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--out", type=Path, default=Path("two-levels"))
    a = parser.parse_args()
    a.program = a.program.resolve()
    a.out.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(a.threads)
    a.vocabulary = len(json.loads((a.corpus / "counts.json").read_text())["counts"])
    data = {split: tokens(a.corpus / f"{split}.bin") for split in ("train", "valid", "test")}
    data["prefixes"], references = cut_windows(data["test"])
    save(a.out / "human.jsonl", references)
    columns = [("KLD", 2), ("MSJ1", 1), ("MSJ2", 1), ("MSJ3", 1), ("SB2", 1), ("D1", 1), ("Rep", 2), ("Uniq", 0)]
    print("| K | levels, decoding | PPL, validation | " + " | ".join(heading for heading, _ in columns) + " |")
    print("|--:|---|" + "--:|" * (len(columns) + 1))
    for number, groups in (map(int, word.split(":")) for word in a.levels):
        command = [a.program, "classes", a.corpus, "--method", a.method, "--k", str(number), "--json"]
        command += ["--out", a.out / f"K{number}.classes.json"]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        classes = json.loads(done.stdout)
        for levels, ways in ((0, ONE), (groups, TWO)):
            found = [measure(a, classes, number, levels, seed, data) for seed in a.seeds]
            ppl = spread([one["perplexity"] for one in found], 1)
            for way in ways:
                rows = zip(*(one["texts"][way] for one in found))
                cells = [spread(column, digits) for column, (_, digits) in zip(rows, columns)]
                title = (f"two, S = {groups}" if levels else "one") + way.replace(" T", f" {a.temperature:g}")
                print(f"| {number} | {title.replace('k classes', f'{a.k} likeliest classes')} | {ppl} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
