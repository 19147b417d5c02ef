"""Reference values of the decoder from PyTorch: losses, every gradient, and ten AdamW steps.

    pip install torch numpy
    python oracle/decoder.py crates/f2-lm/tests/fixtures

writes decoder.safetensors (weights, gradients, tokens) and decoder.json (losses, settings). The sizes are deliberately
small and uneven: none is a multiple of another.
"""

import json
import struct
import sys
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

LAYERS, WIDTH, HEADS, INNER = 2, 24, 3, 40
VOCABULARY, SEQUENCE, BATCH = 61, 13, 3
CLASS_ENDS = [2, 3, 9, 25, 61]
STEPS = 10
OPTIMISER = dict(learning_rate=3e-3, beta1=0.9, beta2=0.999, epsilon=1e-8, weight_decay=0.1, clip=0.25)


def parameters():
    """A map from name to shape, in the order of the layout in f2."""
    shapes = {"embedding.tokens": (VOCABULARY, WIDTH), "embedding.positions": (SEQUENCE, WIDTH)}
    for layer in range(LAYERS):
        block = f"block.{layer}."
        shapes |= {
            block + "attention_norm.gain": (WIDTH,),
            block + "attention_norm.bias": (WIDTH,),
            block + "qkv.weight": (3 * WIDTH, WIDTH),
            block + "qkv.bias": (3 * WIDTH,),
            block + "attention_out.weight": (WIDTH, WIDTH),
            block + "attention_out.bias": (WIDTH,),
            block + "feed_forward_norm.gain": (WIDTH,),
            block + "feed_forward_norm.bias": (WIDTH,),
            block + "expand.weight": (INNER, WIDTH),
            block + "expand.bias": (INNER,),
            block + "contract.weight": (WIDTH, INNER),
            block + "contract.bias": (WIDTH,),
        }
    shapes |= {"final_norm.gain": (WIDTH,), "final_norm.bias": (WIDTH,)}
    return shapes | {"head.tokens": (VOCABULARY, WIDTH), "head.classes": (len(CLASS_ENDS), WIDTH)}


def draw(generator):
    """Weights far from the usual initial values, so that every term of every gradient matters."""
    weights = {}
    for name, shape in parameters().items():
        noise = torch.randn(shape, generator=generator)
        weights[name] = 1 + 0.1 * noise if name.endswith("gain") else 0.2 * noise
    return weights


def hidden_states(w, tokens):
    x = w["embedding.tokens"][tokens] + w["embedding.positions"][: tokens.shape[1]]
    for layer in range(LAYERS):
        p = lambda name: w[f"block.{layer}.{name}"]
        norm = lambda name, x: F.layer_norm(x, (WIDTH,), p(name + ".gain"), p(name + ".bias"))
        qkv = F.linear(norm("attention_norm", x), p("qkv.weight"), p("qkv.bias"))
        split = [t.unflatten(2, (HEADS, -1)).transpose(1, 2) for t in qkv.chunk(3, 2)]
        attended = F.scaled_dot_product_attention(*split, is_causal=True).transpose(1, 2).flatten(2)
        x = x + F.linear(attended, p("attention_out.weight"), p("attention_out.bias"))
        inner = F.linear(norm("feed_forward_norm", x), p("expand.weight"), p("expand.bias"))
        x = x + F.linear(F.gelu(inner, approximate="tanh"), p("contract.weight"), p("contract.bias"))
    return F.layer_norm(x, (WIDTH,), w["final_norm.gain"], w["final_norm.bias"])


def mle(w, hidden, targets):
    return F.cross_entropy(F.linear(hidden, w["head.tokens"]).flatten(0, 1), targets.flatten())


def f2(w, hidden, targets):
    """The loss from the full posterior, slow but independent of the fast implementation."""
    classes = F.log_softmax(F.linear(hidden, w["head.classes"]), -1)
    logits = F.linear(hidden, w["head.tokens"])
    starts = [0] + CLASS_ENDS[:-1]
    posterior = torch.cat(
        [
            classes[..., [c]] + F.log_softmax(logits[..., start:end], -1)
            for c, (start, end) in enumerate(zip(starts, CLASS_ENDS))
        ],
        -1,
    )
    return F.nll_loss(posterior.flatten(0, 1), targets.flatten())


def train(objective, start, windows):
    """The gradients of the first window's loss, and the losses of all steps."""
    w = {name: value.clone().requires_grad_() for name, value in start.items()}
    decayed = [value for value in w.values() if value.dim() == 2]
    others = [value for value in w.values() if value.dim() == 1]
    o = OPTIMISER
    groups = [{"params": decayed, "weight_decay": o["weight_decay"]}, {"params": others, "weight_decay": 0.0}]
    adam = torch.optim.AdamW(groups, lr=o["learning_rate"], betas=(o["beta1"], o["beta2"]), eps=o["epsilon"])
    losses, gradients = [], None
    for window in windows:
        adam.zero_grad()
        loss = objective(w, hidden_states(w, window[:, :-1]), window[:, 1:])
        loss.backward()
        if gradients is None:
            gradients = {name: v.grad.clone() for name, v in w.items() if v.grad is not None}
        torch.nn.utils.clip_grad_norm_([v for v in w.values() if v.grad is not None], o["clip"])
        adam.step()
        losses.append(loss.item())
    return losses, gradients


def save_safetensors(path, tensors):
    header, offset, blobs = {}, 0, []
    for name, array in tensors.items():
        blob = np.ascontiguousarray(array).tobytes()
        kind = {"float32": "F32", "uint32": "U32"}[str(array.dtype)]
        header[name] = {"dtype": kind, "shape": list(array.shape), "data_offsets": [offset, offset + len(blob)]}
        offset += len(blob)
        blobs.append(blob)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(blobs))


def main(folder):
    torch.set_default_dtype(torch.float64)
    generator = torch.Generator().manual_seed(20201116)
    # Rounded to f32, so that both sides start from identical values.
    start = {name: value.float().double() for name, value in draw(generator).items()}
    frequencies = 1 / torch.arange(1, VOCABULARY + 1)
    count = STEPS * BATCH * SEQUENCE + 1
    stream = torch.multinomial(frequencies, count, replacement=True, generator=generator)
    windows = [
        torch.stack([stream[(step * BATCH + row) * SEQUENCE :][: SEQUENCE + 1] for row in range(BATCH)])
        for step in range(STEPS)
    ]
    tensors = {f"weight/{name}": value.float().numpy() for name, value in start.items()}
    tensors["tokens"] = stream.numpy().astype(np.uint32)
    losses = {}
    for name, objective in [("mle", mle), ("f2", f2)]:
        losses[name], gradients = train(objective, start, windows)
        tensors |= {f"{name}/{key}": value.float().numpy() for key, value in gradients.items()}
    save_safetensors(folder / "decoder.safetensors", tensors)
    model = dict(layers=LAYERS, width=WIDTH, heads=HEADS, feed_forward=INNER, vocabulary=VOCABULARY)
    about = dict(
        torch=torch.__version__, model=model, sequence=SEQUENCE, batch=BATCH, class_ends=CLASS_ENDS,
        optimiser=OPTIMISER, losses=losses,
    )
    (folder / "decoder.json").write_text(json.dumps(about, indent=1) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
