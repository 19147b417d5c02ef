"""Decoding by f2 and by Hugging Face transformers on the same weights and cores: medians of alternating runs.

    cargo build --release
    python bench/generate.py target/release/f2 --rounds 5 --threads 2

needs `pip install torch transformers safetensors tokenizers numpy`. A plain model of the paper's size has random
weights; f2 and transformers generate 100 tokens greedily after 16 prompts of 50. Then an F² model with the same trunk
generates with decoupled and joint decoding, greedily and with k = 3, for all prompts and for a single one. Prints a
Markdown table and the speed-up that the operation counts allow, and writes every run to generate.jsonl.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np


def shape(a):
    return dict(layers=a.layers, width=a.width, heads=a.width // 64, feed_forward=4 * a.width, positions=1024)


def tensors(a, classes):
    """The parameters by name, as docs/formats.md lists them."""
    random, d, f = np.random.default_rng(1), a.width, 4 * a.width
    normal = lambda *dims: random.normal(0, 0.02, dims).astype(np.float32)
    out = {"embedding.tokens": normal(a.vocab, d), "embedding.positions": normal(1024, d)}
    norms = ["final_norm"]
    for i in range(a.layers):
        block = f"block.{i}."
        norms += [block + "attention_norm", block + "feed_forward_norm"]
        linear = [("qkv", 3 * d, d), ("attention_out", d, d), ("expand", f, d), ("contract", d, f)]
        for name, outputs, inputs in linear:
            out[f"{block}{name}.weight"] = normal(outputs, inputs)
            out[f"{block}{name}.bias"] = normal(outputs)
    for name in norms:
        out[name + ".gain"], out[name + ".bias"] = np.ones(d, np.float32), np.zeros(d, np.float32)
    # Larger than usual initial weights: peaked distributions, so that few tokens tie and classes differ.
    out["head.tokens"] = 10 * normal(a.vocab, d)
    if classes:
        out["head.classes"] = 5 * normal(classes, d)
    return out


def write_model(a, folder, program, f2):
    from safetensors.numpy import save_file
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    folder.mkdir()
    classes = 0
    if f2:
        counts = [int(1e9 / (rank + 2.7)) for rank in range(a.vocab)]
        (folder / "zipf.json").write_text(json.dumps(counts))
        command = [program, "classes", "--counts", folder / "zipf.json", "--out", folder / "classes.json"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        classes = json.loads((folder / "classes.json").read_text())["k"]
    save_file(tensors(a, classes), folder / "model.safetensors")
    model = dict(format=1, **shape(a), tied=False, dropout=0.1, vocabulary=a.vocab, classes=classes)
    (folder / "model.json").write_text(json.dumps(model))
    # Prompts are ids, so a tokenizer of single bytes is sufficient.
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE({letter: i for i, letter in enumerate(alphabet)}, []))
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.ByteLevel(False), decoders.ByteLevel()
    tokenizer.save(str(folder / "tokenizer.json"))
    return classes


def prompts(a, count):
    return np.random.default_rng(2).integers(0, a.vocab, (count, a.prefix)).tolist()


def ours(a, folder, flags, count=None):
    """Tokens per second and the ids of a run on `count` prompts, by default all of them."""
    count = count or a.prompts
    given, out = folder / "prompts.jsonl", folder / "out.jsonl"
    given.write_text("".join(json.dumps({"ids": ids}) + "\n" for ids in prompts(a, count)))
    command = [a.program, "generate", folder, "--prompts", given, "--new-tokens", str(a.new), "--batch", str(count)]
    command += ["--threads", str(a.threads), "--device", "cpu", "--no-stop", "--out", out, *flags]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stderr
    return float(re.search(r"([\d.]+) tokens/s", said)[1]), [json.loads(line)["ids"] for line in open(out)]


def load_transformers(a, folder):
    import torch
    from safetensors.numpy import load_file
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.set_num_threads(a.threads)
    config = GPT2Config(vocab_size=a.vocab, n_positions=1024, n_embd=a.width, n_layer=a.layers, n_head=a.width // 64,
                        tie_word_embeddings=False, bos_token_id=None, eos_token_id=None)
    model = GPT2LMHeadModel(config).eval()
    own = {name: torch.from_numpy(values) for name, values in load_file(folder / "model.safetensors").items()}
    state = {"transformer.wte.weight": own["embedding.tokens"], "transformer.wpe.weight": own["embedding.positions"],
             "lm_head.weight": own["head.tokens"]}
    norms = {"final_norm": "transformer.ln_f"}
    for i in range(a.layers):
        block, theirs = f"block.{i}.", f"transformer.h.{i}."
        norms |= {block + "attention_norm": theirs + "ln_1", block + "feed_forward_norm": theirs + "ln_2"}
        linear = dict(qkv="attn.c_attn", attention_out="attn.c_proj", expand="mlp.c_fc", contract="mlp.c_proj")
        for name, layer in linear.items():
            # Their matrices are [inputs, outputs].
            state[f"{theirs}{layer}.weight"] = own[f"{block}{name}.weight"].T.contiguous()
            state[f"{theirs}{layer}.bias"] = own[f"{block}{name}.bias"]
    for name, layer in norms.items():
        state[layer + ".weight"], state[layer + ".bias"] = own[name + ".gain"], own[name + ".bias"]
    missing, unexpected = model.load_state_dict(state, strict=False)
    assert not unexpected and all(".attn." in name for name in missing), (missing, unexpected)
    return model


def transformers(a, model):
    import torch

    ids = torch.tensor(prompts(a, a.prompts))
    with torch.inference_mode():
        began = time.perf_counter()
        out = model.generate(ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=a.new,
                             min_new_tokens=a.new, pad_token_id=0, use_cache=True)
        seconds = time.perf_counter() - began
    return a.prompts * a.new / seconds, out[:, a.prefix:].tolist()


def ceiling(a):
    """Multiplications for a text decoded jointly, relative to those of its blocks, which both methods need."""
    blocks = (a.prefix + a.new) * a.layers * 12 * a.width**2
    return 1 + a.new * a.vocab * a.width / blocks


def agreement(left, right):
    """The share of texts that are identical; a few differ because of ties within rounding."""
    return sum(l == r for l, r in zip(left, right)) / len(left)


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("program")
    arguments.add_argument("--rounds", type=int, default=5)
    arguments.add_argument("--threads", type=int, default=os.cpu_count())
    arguments.add_argument("--layers", type=int, default=12)
    arguments.add_argument("--width", type=int, default=512)
    arguments.add_argument("--vocab", type=int, default=30_000)
    arguments.add_argument("--prompts", type=int, default=16)
    arguments.add_argument("--prefix", type=int, default=50)
    arguments.add_argument("--new", type=int, default=100)
    arguments.add_argument("--log", type=Path, default=Path("generate.jsonl"))
    a = arguments.parse_args()
    a.program = Path(a.program).resolve()
    with tempfile.TemporaryDirectory() as scratch:
        plain, f2 = Path(scratch, "plain"), Path(scratch, "f2")
        write_model(a, plain, a.program, False)
        classes = write_model(a, f2, a.program, True)
        model = load_transformers(a, plain)
        runs = {
            "transformers, greedy": lambda: transformers(a, model),
            "f2, greedy": lambda: ours(a, plain, ["--greedy"]),
            "f2, F² joint, greedy": lambda: ours(a, f2, ["--greedy", "--joint"]),
            "f2, F² decoupled, greedy": lambda: ours(a, f2, ["--greedy"]),
            "f2, F² joint, k = 3": lambda: ours(a, f2, ["--top-k", "3", "--joint"]),
            "f2, F² decoupled, k = 3": lambda: ours(a, f2, ["--top-k", "3"]),
            "f2, F² joint, greedy, one prompt": lambda: ours(a, f2, ["--greedy", "--joint"], 1),
            "f2, F² decoupled, greedy, one prompt": lambda: ours(a, f2, ["--greedy"], 1),
            "f2, F² joint, k = 3, one prompt": lambda: ours(a, f2, ["--top-k", "3", "--joint"], 1),
            "f2, F² decoupled, k = 3, one prompt": lambda: ours(a, f2, ["--top-k", "3"], 1),
        }
        rates, texts = {name: [] for name in runs}, {}
        for round in range(a.rounds + 1):
            for name, run in runs.items():
                time.sleep(1)  # until the effects of the previous run have passed
                rate, texts[name] = run()
                if round == 0:
                    continue  # a warm-up
                rates[name].append(rate)
                with open(a.log, "a") as log:
                    log.write(json.dumps(dict(run=name, round=round, tokens_per_second=rate)) + "\n")
    median = {name: statistics.median(each) for name, each in rates.items()}
    print(f"{a.layers} layers, width {a.width}, vocabulary {a.vocab}, {classes} classes, {a.threads} threads, "
          f"{a.prompts} prompts of {a.prefix}, {a.new} new tokens, {a.rounds} rounds\n")
    print("| | tokens/s | of all runs |\n|---|--:|--:|")
    for name, rate in median.items():
        print(f"| {name} | {rate:.0f} | {min(rates[name]):.0f}–{max(rates[name]):.0f} |")
    print(f"\nf2 over transformers: {median['f2, greedy'] / median['transformers, greedy']:.2f}, "
          f"same texts: {100 * agreement(texts['f2, greedy'], texts['transformers, greedy']):.0f} %")
    for way in ["greedy", "k = 3", "greedy, one prompt", "k = 3, one prompt"]:
        ratio = median[f"f2, F² decoupled, {way}"] / median[f"f2, F² joint, {way}"]
        print(f"decoupled over joint, {way}: {ratio:.2f}")
    print(f"by arithmetic alone, if the tokens of the chosen class cost nothing: {ceiling(a):.2f}")


if __name__ == "__main__":
    main()
