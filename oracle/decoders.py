"""Reference implementation of the decoding methods published after the paper, and its fixture.

    pip install numpy
    python oracle/decoders.py crates/f2-lm/tests/fixtures

reads decoder.safetensors, written by decoder.py, and writes decoders.json: the tokens kept by truncation rules for
given log-probabilities, the tokens kept by top-k with a separate k for each class, a run of mirostat, penalties of DRY,
and the texts found by contrastive search, contrastive decoding and iterative beam search. All computations are in
double precision; search uses no cache, with a separate pass for every hypothesis.
"""

import json
import struct
import sys
from pathlib import Path

import numpy as np

LAYERS, HEADS = 2, 3
# Fewer classes than in decoder.py; one of them is a single token that is too likely.
CLASS_ENDS = [9, 25, 61]
PROMPTS = [[3, 1, 4], [1, 5, 9], [40, 2, 6], [60, 60, 60], [8], [17, 33]]
NEW_TOKENS = 9


# The model: that of decoder.py.


def load_weights(path):
    raw = path.read_bytes()
    length = struct.unpack("<Q", raw[:8])[0]
    weights = {}
    for name, about in json.loads(raw[8 : 8 + length]).items():
        if name.startswith("weight/"):
            start, end = (8 + length + offset for offset in about["data_offsets"])
            values = np.frombuffer(raw[start:end], np.float32).reshape(about["shape"])
            weights[name.removeprefix("weight/")] = values.astype(np.float64)
    return weights


def layer_norm(x, gain, bias):
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * gain + bias


def hidden_states(w, tokens):
    length = len(tokens)
    x = w["embedding.tokens"][tokens] + w["embedding.positions"][:length]
    later = np.triu(np.full((length, length), -np.inf), 1)
    for layer in range(LAYERS):
        p = lambda name: w[f"block.{layer}.{name}"]
        norm = lambda name: layer_norm(x, p(name + ".gain"), p(name + ".bias"))
        q, k, v = np.split(norm("attention_norm") @ p("qkv.weight").T + p("qkv.bias"), 3, 1)
        size = q.shape[1] // HEADS
        attended = np.empty_like(q)
        for head in range(HEADS):
            part = slice(head * size, (head + 1) * size)
            weight = np.exp(log_softmax(q[:, part] @ k[:, part].T / np.sqrt(size) + later))
            attended[:, part] = weight @ v[:, part]
        x = x + attended @ p("attention_out.weight").T + p("attention_out.bias")
        inner = norm("feed_forward_norm") @ p("expand.weight").T + p("expand.bias")
        gelu = 0.5 * inner * (1 + np.tanh(np.sqrt(2 / np.pi) * (inner + 0.044715 * inner**3)))
        x = x + gelu @ p("contract.weight").T + p("contract.bias")
    return layer_norm(x, w["final_norm.gain"], w["final_norm.bias"])


def log_softmax(x):
    x = x - x.max(-1, keepdims=True)
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


def members(c):
    return range(CLASS_ENDS[c - 1] if c else 0, CLASS_ENDS[c])


def posterior(w, h, classed):
    """Log-probabilities of all tokens, and of the classes."""
    logits = w["head.tokens"] @ h
    if not classed:
        return log_softmax(logits), None
    classes = log_softmax(w["head.classes"][: len(CLASS_ENDS)] @ h)
    within = [log_softmax(logits[list(members(c))]) for c in range(len(CLASS_ENDS))]
    return np.concatenate([own + log for own, log in zip(within, classes)]), classes


def candidates(w, tokens, way):
    """The ids to choose from and their log-probabilities: all, or those in the likeliest class."""
    logs, classes = posterior(w, hidden_states(w, tokens)[-1], way != "plain")
    if way != "decoupled":
        return np.arange(len(logs)), logs
    c = int(np.argmax(classes))
    ids = np.array(members(c))
    return ids, logs[ids] - classes[c]


# Methods that choose single tokens.


def probabilities(logs, temperature):
    return np.exp(log_softmax(np.array(logs, np.float64) / temperature))


def kept(p, keep):
    ids = np.flatnonzero(keep)
    return dict(ids=ids.tolist(), probabilities=(p[ids] / p[ids].sum()).tolist())


def at_least(p, cutoff):
    return p >= min(cutoff, p.max())


def top_n_sigma(logs, p, n):
    logs = np.array(logs, np.float64)
    return logs >= logs.max() - n * logs.std()


def epsilon(logs, p, e):
    return at_least(p, e)


def eta(logs, p, e):
    return at_least(p, min(e, np.sqrt(e) * np.exp(np.sum(p * np.log(p)))))


def xtc(logs, p, threshold):
    top = [i for i in range(len(p)) if p[i] >= threshold]
    top.sort(key=lambda i: (-p[i], i))
    return np.array([i not in top[:-1] for i in range(len(p))])


def rules(random):
    cases = []
    for size in [1, 4, 12, 40, 200]:
        logs = log_softmax(random.normal(0, 2.5, size)).astype(np.float32)
        for temperature in [1.0, 0.7]:
            p = probabilities(logs, temperature)
            case = dict(logs=logs.tolist(), temperature=temperature, rules=[])
            for rule, settings in [
                (top_n_sigma, [0.3, 1.0, 2.0]), (epsilon, [0.002, 0.03, 0.9]),
                (eta, [0.002, 0.03, 0.9]), (xtc, [0.05, 0.15, 0.4]),
            ]:
                for setting in settings:
                    found = kept(p, rule(logs, p, setting))
                    case["rules"].append(dict(rule=rule.__name__, setting=setting, **found))
            cases.append(case)
    return cases


def class_ks(random):
    cases = []
    for ends in [[1, 3, 7, 12], [4, 9, 21, 60, 200]]:
        sizes = np.diff(ends, prepend=0)
        logs = [log_softmax(random.normal(0, 2.5, n)).astype(np.float32) for n in sizes]
        for k, growth in [(1, 0.5), (3, 0.0), (3, 0.3), (3, 1.0), (2, 1.7)]:
            # Halves are rounded up, unlike in numpy's round.
            ks = np.minimum(np.floor(k * (sizes / sizes.min()) ** growth + 0.5), sizes.sum()).astype(int)
            classes = [
                dict(k=int(own), logs=log.tolist(), **kept(probabilities(log, 1), log >= np.sort(log)[-min(own, n)]))
                for own, n, log in zip(ks, sizes, logs)
            ]
            cases.append(dict(ends=ends, k=k, growth=growth, classes=classes))
    return cases


def mirostat(random, tau, rate):
    """Tokens of a class whose own log-probability counts; a class of probability 1 is a plain model."""
    steps, limit = [], 2 * tau
    for step in range(40):
        logs = log_softmax(random.normal(0, 2, 30)).astype(np.float32)
        own = np.float32(0 if step % 2 else np.log(random.uniform(0.05, 0.9)))
        joint = logs.astype(np.float64) + float(own)
        surprise = -joint / np.log(2)
        p = np.exp(logs.astype(np.float64))
        keep = kept(p, (surprise <= limit) | (surprise == surprise.min()))
        uniform = random.uniform()
        chosen = keep["ids"][int(np.searchsorted(np.cumsum(keep["probabilities"]), uniform, "right"))]
        limit -= rate * (surprise[chosen] - tau)
        steps.append(dict(logs=logs.tolist(), own=float(own), uniform=uniform, chosen=chosen, limit=limit, **keep))
    return dict(tau=tau, eta=rate, steps=steps)


def dry(history, multiplier, base, allowed, breakers):
    longest = {}
    for place in range(len(history) - 1):
        length = 0
        while (
            length <= place
            and history[place - length] == history[-1 - length]
            and history[-1 - length] not in breakers
        ):
            length += 1
        following = history[place + 1]
        if following not in breakers:
            longest[following] = max(length, longest.get(following, 0))
    return {t: multiplier * base ** (n - allowed) for t, n in sorted(longest.items()) if n >= allowed}


def penalties(random):
    cases = []
    for letters, length in [(2, 1), (2, 12), (3, 40), (4, 90), (8, 150)]:
        for breakers in [[], [1]]:
            for allowed in [1, 2, 4]:
                history = random.integers(0, letters, length).tolist()
                settings = dict(multiplier=0.8, base=1.1, allowed_length=allowed, breakers=breakers)
                found = dry(history, 0.8, 1.1, allowed, breakers)
                cases.append(dict(history=history, penalties=list(found.items()), **settings))
    return cases


# Methods that search for whole texts.


def contrastive_search(w, prompt, way, k, alpha):
    tokens = list(prompt)
    for _ in range(NEW_TOKENS):
        ids, logs = candidates(w, tokens, way)
        best = sorted(zip(-logs, ids))[:k]
        context = hidden_states(w, tokens)
        context /= np.linalg.norm(context, axis=1, keepdims=True)
        scores = []
        for negative, token in best:
            h = hidden_states(w, tokens + [token])[-1]
            likeness = (context @ (h / np.linalg.norm(h))).max()
            scores.append(((1 - alpha) * np.exp(-negative) - alpha * likeness, -int(token)))
        tokens.append(-max(scores)[1])
    return tokens[len(prompt):]


def contrasted(expert, amateur, tokens, way, alpha, temperature):
    """Ids and contrastive scores; the amateur is normalised over the same tokens."""
    ids, logs = candidates(expert, tokens, way)
    other, _ = posterior(amateur, hidden_states(amateur, tokens)[-1], False)
    scores = logs - log_softmax(other[ids] / temperature)
    return ids, np.where(logs >= np.log(alpha) + logs.max(), scores, -np.inf)


def contrastive_greedy(expert, amateur, prompt, way, alpha, temperature):
    tokens = list(prompt)
    for _ in range(NEW_TOKENS):
        ids, scores = contrasted(expert, amateur, tokens, way, alpha, temperature)
        tokens.append(int(ids[np.argmax(scores)]))
    return tokens[len(prompt):]


def beam(score, prompt, width, explored):
    """Texts with their scores, best first. Hypotheses that were explored before, at the same length, are left out."""
    running = [((), 0.0)]
    for _ in range(NEW_TOKENS):
        longer = []
        for text, sum_ in running:
            ids, scores = score(list(prompt) + list(text))
            longer += [(text + (int(i),), sum_ + s) for i, s in zip(ids, scores) if np.isfinite(s)]
        longer = [(text, s) for text, s in longer if text not in explored]
        longer.sort(key=lambda hypothesis: -hypothesis[1])
        running = longer[:width]
        explored.update(text for text, _ in running)
    return running


def iterative_beam(w, prompt, width, iterations):
    found, explored = [], set()
    for _ in range(iterations):
        # Hypotheses explored by an iteration are excluded only in later iterations.
        now = set(explored)
        found += beam(lambda tokens: candidates(w, tokens, "plain"), prompt, width, now)
        explored = now
    found.sort(key=lambda hypothesis: -hypothesis[1])
    return [list(text) for text, _ in found]


def main(folder):
    random = np.random.default_rng(20220608)
    expert = load_weights(folder / "decoder.safetensors")
    # The amateur has no second block.
    amateur = {name: v * (0 if name.startswith(("block.1.attention_out", "block.1.contract")) else 1) for name, v in expert.items()}
    ways = ["plain", "joint", "decoupled"]
    search = [
        dict(way=way, k=k, alpha=alpha, texts=[contrastive_search(expert, p, way, k, alpha) for p in PROMPTS])
        for way in ways for k, alpha in [(4, 0.6), (7, 0.3), (1, 0.6)]
    ]
    decoding = [
        dict(way=way, alpha=alpha, temperature=temperature,
             texts=[contrastive_greedy(expert, amateur, p, way, alpha, temperature) for p in PROMPTS])
        for way in ways for alpha, temperature in [(0.1, 1.0), (0.3, 0.5)]
    ]
    beams = [
        [text for text, _ in beam(lambda t: contrasted(expert, amateur, t, "plain", 0.1, 1.0), p, 4, set())]
        for p in PROMPTS
    ]
    fixture = dict(
        class_ks=class_ks(np.random.default_rng(20261118)),
        rules=rules(random), mirostat=[mirostat(random, 3.0, 0.3), mirostat(random, 1.5, 0.1)], dry=penalties(random),
        prompts=PROMPTS, new_tokens=NEW_TOKENS, contrastive_search=search, contrastive_decoding=decoding,
        contrastive_beams=[list(map(list, texts)) for texts in beams],
        iterative_beam=dict(width=3, iterations=3, texts=[iterative_beam(expert, p, 3, 3) for p in PROMPTS]),
    )
    (folder / "decoders.json").write_text(json.dumps(fixture) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
