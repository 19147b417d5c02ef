"""The further metrics as their published implementations compute them.

    python3 oracle/further_metrics.py    (needs numpy, scipy, scikit-learn, nltk, diversity, simctg,
                                          vendi-score, lexical-diversity, lexicalrichness, mauve-text
                                          and faiss-cpu; of simctg, vendi-score, diversity and mauve-text
                                          single files are loaded, so that torch is not needed)

writes crates/f2-metrics/tests/fixtures/further.json. Texts are the words w0, w1, … joined by spaces; the
fixture contains their numbers.

Where a published program differs from its paper, a comment at the call says so, and the paper's definition is used.
"""
import gzip
import importlib.util
import json
import math
import random
import sys
import types
from collections import Counter
from pathlib import Path

import faiss
import numpy as np
import scipy
import sklearn
from lexical_diversity import lex_div
from lexicalrichness import LexicalRichness
from scipy import stats
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.preprocessing import normalize

from metrics import zipf_texts

FIXTURE = Path(__file__).parent.parent / "crates/f2-metrics/tests/fixtures/further.json"


def load(package, module):
    """Loads a module of a package without running the package's imports."""
    places = [Path(entry) / package / f"{module}.py" for entry in sys.path]
    path = next(place for place in places if place.exists())
    spec = importlib.util.spec_from_file_location(f"{package}_{module}", path)
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def mauve_program():
    """The computation of mauve-text; the part that runs a model imports torch and is not needed."""
    sys.modules.setdefault("mauve.utils", types.ModuleType("mauve.utils"))
    return load("mauve", "compute_mauve")


def vendi_score(strings, longest=4):
    """`ngram_vendi_score` with words as tokens; its file imports torch, so its steps are repeated here."""
    matrices = []
    for n in range(1, longest + 1):
        counts = CountVectorizer(tokenizer=str.split, token_pattern=None, ngram_range=(n, n),
                                 lowercase=False).fit_transform(strings)
        scaled = normalize(counts.astype(float))
        matrices.append((scaled @ scaled.T).toarray())
    values = scipy.linalg.eigvalsh(np.mean(matrices, axis=0) / len(strings))
    return float(np.exp(load("vendi_score", "vendi").entropy_q(values)))


def zipf(texts, ranks):
    """Holtzman et al.: the slope of a line through the most frequent tokens."""
    counts = sorted(Counter(token for text in texts for token in text).values(), reverse=True)[:ranks]
    places = np.arange(1, len(counts) + 1)
    return -stats.linregress(np.log(places), np.log(counts)).slope


def entropy(texts, n):
    counts = Counter(tuple(text[i:i + n]) for text in texts for i in range(len(text) - n + 1))
    return float(stats.entropy(list(counts.values())))


def rep_n(strings, n):
    """simctg omits the last n-gram of each text; with one more word appended, it omits only that word's."""
    parts = [load("simctg", "evaluation").eval_text(text + " end", n) for text in strings]
    return 1 - sum(unique for unique, _ in parts) / sum(total for _, total in parts)


def mattr(texts, window):
    values = []
    for text in texts:
        value = lex_div.mattr(text, window)
        if len(text) >= window:
            richness = LexicalRichness(" ".join(f"w{token}" for token in text),
                                       preprocessor=None, tokenizer=str.split)
            assert abs(richness.mattr(window) - value) < 1e-12
        values.append(value)
    return float(np.mean(values))


def of_set(texts):
    strings = [" ".join(f"w{token}" for token in text) for text in texts]
    joined = " ".join(strings).encode()
    repetition = load("diversity", "self_repetition").self_repetition_score(strings, 4, verbose=False)
    rep = {n: rep_n(strings, n) for n in (2, 3, 4)}
    return dict(
        texts=texts,
        compression_ratio=len(joined) / len(gzip.compress(joined)),
        # Compressed twice and rounded to three digits.
        compression_ratio_of_diversity=load("diversity", "compression").compression_ratio(strings),
        self_repetition=float(repetition),
        rep_n=list(rep.values()),
        diversity=math.prod(1 - value for value in rep.values()),
        zipf=float(zipf(texts, 5000)), zipf_10=float(zipf(texts, 10)),
        entropy=[entropy(texts, n) for n in (1, 2, 3)],
        mattr_50=mattr(texts, 50), mattr_10=mattr(texts, 10),
        vendi=vendi_score(strings))


def curves(rng):
    """Histograms, and the results of mauve-text for them."""
    program = mauve_program()
    cases = []
    for clusters, points in ((2, 5), (5, 40), (20, 200), (100, 500)):
        p, q = (np.bincount(rng.choice(clusters, points, p=rng.dirichlet(np.ones(clusters))),
                            minlength=clusters) for _ in range(2))
        cases.append(dict(human=p.tolist(), model=q.tolist(), **frontier(program, p, q)))
    return cases


def frontier(program, p, q):
    def area(p, q):
        x, y = program.get_divergence_curve_for_multinomials(
            p, q, np.linspace(1e-6, 1 - 1e-6, 25), 5).T
        a, b = np.argsort(x, kind="stable"), np.argsort(y, kind="stable")
        return float(0.5 * (program.compute_area_under_curve(x[a], y[a])
                            + program.compute_area_under_curve(y[b], x[b])))
    plain = [side / side.sum() for side in (p, q)]
    smooth = [(side + 0.5) / (side + 0.5).sum() for side in (p, q)]
    return dict(mauve=area(*plain), smoothed=area(*smooth),
                integral=float(program.get_fronter_integral(*plain)),
                smoothed_integral=float(program.get_fronter_integral(*smooth)))


def features(seed, count, width, shift):
    """Points that the test generates from the same random numbers: sums of SplitMix64 in f32."""
    state, rows = seed, []
    for number in range(count):
        row = []
        for place in range(width):
            total = 0
            for _ in range(4):
                state = (state + 0x9E3779B97F4A7C15) % 2**64
                z = state
                z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 % 2**64
                z = (z ^ z >> 27) * 0x94D049BB133111EB % 2**64
                total += (z ^ z >> 31) >> 40
            centre = 3.0 if number % 5 == place % 5 else 0.0
            row.append(total / 2**24 - 2.0 + centre + shift * (place % 3))
        rows.append(row)
    return np.array(rows, dtype=np.float32)


def clusterings():
    """mauve-text end to end on the same points, in f64 up to faiss."""
    program = mauve_program()
    cases = []
    for count, width, shift, seed in ((60, 8, 0.2, 25), (120, 24, 0.1, 25), (200, 16, 0.5, 7),
                                      (400, 32, 0.05, 25), (30, 80, 0.3, 25)):
        human, model = features(seed, count, width, 0.0), features(seed + 1, count + 7, width, shift)
        found = program.compute_mauve(human.astype(np.float64), model.astype(np.float64), seed=seed,
                                      verbose=False)
        counts = [np.rint(side * size).astype(int).tolist()
                  for side, size in ((found.p_hist, count), (found.q_hist, count + 7))]
        cases.append(dict(count=count, width=width, shift=shift, seed=seed, mauve=float(found.mauve),
                          smoothed=float(found.mauve_star), human=counts[0], model=counts[1],
                          first=[float(x) for x in human[0]]))
    return cases


def main():
    rng = random.Random(2022)
    sets = [zipf_texts(rng, [100] * 40, 300),
            zipf_texts(rng, [rng.randrange(5, 120) for _ in range(60)], 40),
            zipf_texts(rng, [60] * 12, 8)]
    fixture = dict(
        versions=dict(faiss=faiss.__version__, sklearn=sklearn.__version__, scipy=scipy.__version__,
                      numpy=np.__version__),
        sets=[of_set(texts) for texts in sets],
        curves=curves(np.random.default_rng(2021)), clusterings=clusterings())
    FIXTURE.write_text(json.dumps(fixture) + "\n")


if __name__ == "__main__":
    main()
