"""Reference values of transformers for small GPT-2 folders, for testing import and export.

    pip install torch transformers tokenizers safetensors numpy
    python oracle/gpt2.py crates/f2-lm/tests/fixtures/gpt2

writes a folder for each common variant of a GPT-2 (tied and untied, names with and without the prefix, in shards, in
bfloat16, with vocab.json and merges.txt instead of tokenizer.json), and logits.safetensors: the tokens of a text, and
their logits by `GPT2LMHeadModel.from_pretrained`.

    F2_EXPORTED=/tmp/exported cargo test -p f2-lm --test exchange transformers_computes
    python oracle/gpt2.py --exported /tmp/exported/plain /tmp/exported/f2 3,1,4,1,5,9,2,6,53,58,0,60,7 \\
        > crates/f2-lm/tests/fixtures/exported.json

loads two exported folders, the plain model as `GPT2LMHeadModel` and the F² model's trunk as `GPT2Model`, adds
the F² head from its tensors, and prints the logits and log-probabilities of the tokens with the hashes of the
tensors they came from.
"""

import hashlib
import json
import re
import shutil
import sys
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import AutoTokenizer, GPT2Config, GPT2LMHeadModel, GPT2Model

TEXT = "the cat sat on the mat and the rat sat on the cat"
WIDTH, LAYERS, HEADS, INNER, POSITIONS = 16, 2, 2, 24, 20


def train_tokenizer():
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=270, initial_alphabet=alphabet, special_tokens=["<|endoftext|>"], show_progress=False
    )
    tokenizer.train_from_iterator([TEXT] * 3, trainer)
    return tokenizer


def model(vocabulary, tied, seed):
    """A GPT-2 with weights far from the usual initial values, so that every one of them matters."""
    config = GPT2Config(
        vocab_size=vocabulary, n_positions=POSITIONS, n_embd=WIDTH, n_layer=LAYERS, n_head=HEADS,
        n_inner=INNER, tie_word_embeddings=tied, bos_token_id=0, eos_token_id=0,
    )
    torch.manual_seed(seed)
    made = GPT2LMHeadModel(config).eval()
    with torch.no_grad():
        for name, weight in made.named_parameters():
            noise = 0.2 * torch.randn_like(weight)
            weight.copy_(1 + noise if re.search(r"ln_\w+\.weight", name) else noise)
    return made


def strip_prefix(folder):
    """Names as in the first GPT-2 checkpoints, which also contain the attention masks."""
    path = folder / "model.safetensors"
    tensors = {name.removeprefix("transformer."): value for name, value in load_file(path).items()}
    tensors |= {f"h.{layer}.attn.bias": torch.ones(1, 1, 4, 4).tril() for layer in range(LAYERS)}
    save_file(tensors, path, metadata={"format": "pt"})


def write_folders(out):
    tokenizer = train_tokenizer()
    tokens = tokenizer.encode(TEXT).ids[:POSITIONS]
    tied, untied = (model(tokenizer.get_vocab_size(), tied, seed) for tied, seed in [(True, 1), (False, 2)])
    shutil.rmtree(out, ignore_errors=True)
    tied.save_pretrained(out / "tied")
    untied.save_pretrained(out / "untied")
    tied.transformer.save_pretrained(out / "tied-bare")
    untied.save_pretrained(out / "untied-bare")
    strip_prefix(out / "untied-bare")
    untied.save_pretrained(out / "sharded", max_shard_size="16KB")
    model(tokenizer.get_vocab_size(), True, 1).to(torch.bfloat16).save_pretrained(out / "bfloat16")
    for folder in out.iterdir():
        (folder / "generation_config.json").unlink(missing_ok=True)
        if folder.name == "untied":
            # The older pair of files of GPT-2.
            tokenizer.model.save(str(folder))
        else:
            tokenizer.save(str(folder / "tokenizer.json"))
    return tokens


def write_logits(out, tokens):
    frozen = {"tokens": torch.tensor(tokens)}
    for folder in sorted(out.iterdir()):
        loaded, report = GPT2LMHeadModel.from_pretrained(folder, dtype=torch.float32, output_loading_info=True)
        assert not report["missing_keys"] and not report["mismatched_keys"], (folder, report)
        with torch.no_grad():
            frozen[folder.name] = loaded.eval()(frozen["tokens"][None]).logits[0]
    save_file(frozen, out / "logits.safetensors", metadata={"text": TEXT})


def hashes(folder):
    """Names, shapes and bytes of all tensors, file by file."""
    prints = {}
    for path in folder.glob("*.safetensors"):
        digest = hashlib.sha256()
        for name, value in sorted(load_file(path).items()):
            digest.update(f"{name} {list(value.shape)}\n".encode() + value.numpy().tobytes())
        prints[path.name] = digest.hexdigest()
    return prints


def read_exported(plain, f2, tokens):
    tokens = [int(token) for token in tokens.split(",")]
    ids = torch.tensor([tokens])
    language_model, report = GPT2LMHeadModel.from_pretrained(plain, output_loading_info=True)
    assert not any(report.values()), report
    trunk, report = GPT2Model.from_pretrained(f2, output_loading_info=True)
    assert not report["missing_keys"] and not report["mismatched_keys"], report
    head = load_file(Path(f2) / "model.safetensors")
    ends = json.loads((Path(f2) / "config.json").read_text())["class_ends"]

    def log_posterior(hidden):
        of_class = torch.log_softmax(hidden @ head["lm_head.weight"].T, -1)
        tokens = head["lm_head.tokens.weight"]
        inside = [torch.log_softmax(hidden @ tokens[a:b].T, -1) for a, b in zip([0, *ends[:-1]], ends)]
        return torch.cat([of_class[..., [c]] + part for c, part in enumerate(inside)], -1)

    tokenizer = AutoTokenizer.from_pretrained(plain)
    assert tokenizer.is_fast
    with torch.no_grad():
        logits = language_model.eval()(ids).logits[0].tolist()
        log_posterior = log_posterior(trunk.eval()(ids).last_hidden_state)[0].tolist()
    about = dict(torch=torch.__version__, tokens=tokens)
    about["plain"] = dict(sha256=hashes(Path(plain)), logits=logits)
    about["f2"] = dict(sha256=hashes(Path(f2)), log_posterior=log_posterior)
    print(json.dumps(about))


if __name__ == "__main__":
    if sys.argv[1] == "--exported":
        read_exported(*sys.argv[2:])
    else:
        out = Path(sys.argv[1])
        write_logits(out, write_folders(out))
