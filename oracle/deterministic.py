"""Choices of deterministic decoding, by error diffusion implemented from its definition.

    python oracle/deterministic.py > crates/f2-lm/tests/fixtures/deterministic.json

needs `pip install numpy`. A case is a text: its prompt and sample number, which determine the phases (without a prompt,
accumulated errors start at zero), and its draws: `vocabulary` or `classes` with the previous token, or `class` with its
number; the weights; the id chosen. Phases come from Philox 4×32-10 (Salmon et al., 2011), with the context of the draw
as the key, and two words of the SHA-256 of prompt and sample, and the rank, as the counter.
"""

import hashlib
import json
import math
import struct
import sys

import numpy as np

MASK = 0xFFFFFFFF


def philox(counter, key):
    for _ in range(10):
        a, b = 0xD2511F53 * counter[0], 0xCD9E8D57 * counter[2]
        counter = [(b >> 32) ^ counter[1] ^ key[0], b & MASK, (a >> 32) ^ counter[3] ^ key[1], a & MASK]
        key = [(key[0] + 0x9E3779B9) & MASK, (key[1] + 0xBB67AE85) & MASK]
    return counter


def phase(prompt, sample, context, rank):
    if prompt is None:
        return 0.0
    content = struct.pack(f"<{len(prompt)}I", *prompt) + struct.pack("<Q", sample)
    words = struct.unpack("<2I", hashlib.sha256(content).digest()[:8])
    first, second = philox([0, *words, rank], [context & MASK, context >> 32])[:2]
    return ((first << 32 | second) >> 11) / 2.0**53 - 0.5


def text(random, prompt, sample, classes, steps):
    contexts, draws = {}, []
    for _ in range(steps):
        kind = ["vocabulary", "classes", "class"][random.integers(3)]
        # Some previous tokens, in few bands; few classes.
        which = int(random.integers(classes) if kind == "class" else random.choice([0, 1, 5, 6, 29999]))
        band = math.floor(math.log2(which)) + 1 if which else 0
        # Few different weights, so that ranks tie; varying numbers of entries, so that contexts gain ranks.
        weights = random.integers(1, 9, random.integers(1, 12)) ** 2
        order = np.argsort(-weights, kind="stable")
        number = {"vocabulary": band, "classes": 64 + band, "class": 128 + which}[kind]
        errors = contexts.setdefault(number, [])
        errors += [phase(prompt, sample, number, rank) for rank in range(len(errors), len(weights))]
        added = np.array(errors[: len(weights)]) + weights[order] / weights.sum()
        largest = int(np.argmax(added))
        added[largest] -= 1.0
        errors[: len(weights)] = added.tolist()
        draws.append([kind, which, weights.tolist(), int(order[largest])])
    return {"prompt": prompt, "sample": sample, "draws": draws}


def main():
    random = np.random.default_rng(20)
    cases = [text(random, None, 0, 3, 300)]
    for sample in range(3):
        prompt = random.integers(0, 30000, random.integers(1, 9)).tolist()
        cases.append(text(random, prompt, sample, 4, 300))
    json.dump(cases, sys.stdout, separators=(",", ":"))
    print()


if __name__ == "__main__":
    main()
