"""Golden values of BLEU, chrF, chrF++ and ROUGE from sacrebleu and rouge-score.

    python -m venv venv && venv/bin/pip install sacrebleu rouge-score
    venv/bin/python oracle/matched.py > crates/f2-metrics/tests/fixtures/matched.json

The texts are generated from a seed: words with punctuation, numbers, entities, other scripts and unusual white space,
and noisy copies of them; some are empty.
"""

import json
import random
import sys

import sacrebleu
from rouge_score.rouge_scorer import RougeScorer

WORDS = """the a cat dog's sat on mat, mat. 3.14 1,000 10-fold U.S. e.g., (see) [1] "quoted" &amp; &quot;
&lt;tag&gt; <skipped> well-known -5 5- a.b ... ,. naïve Ä 고양이 猫 🐈 Δ§ ½ x/y a+b 50% $5 #1 it's K İ don't
co-\noperate end- \u00a0 \u2003 \u001c tab\tbed""".split(" ")
ROUGE = ["rouge1", "rouge2", "rougeL"]


def text(random, words):
    return random.choice([" ", " ", "  ", "\n"]).join(random.choice(WORDS) for _ in range(words))


def noisy(random, reference):
    words = [w for w in reference.split(" ") if random.random() > 0.2]
    for _ in range(random.randrange(4)):
        words.insert(random.randrange(len(words) + 1), random.choice(WORDS))
    return " ".join(words)


def case(seed, texts, longest, copies):
    rng = random.Random(seed)
    references = [text(rng, rng.randrange(longest + 1)) for _ in range(texts)]
    hypotheses = [
        noisy(rng, each) if rng.random() < copies else text(rng, rng.randrange(longest + 1))
        for each in references
    ]
    return scored(references, hypotheses)


def scored(references, hypotheses):
    scorer = RougeScorer(ROUGE, use_stemmer=False)
    rouge = [scorer.score(r, h) for r, h in zip(references, hypotheses)]
    chrf = sacrebleu.corpus_chrf
    return {
        "references": references,
        "texts": hypotheses,
        "bleu": sacrebleu.corpus_bleu(hypotheses, [references], force=True).score / 100,
        "chrf": chrf(hypotheses, [references]).score / 100,
        "chrf_plus": chrf(hypotheses, [references], word_order=2).score / 100,
        "rouge": [sum(each[name].fmeasure for each in rouge) / len(rouge) for name in ROUGE],
    }


def main():
    cases = [case(seed, 1 + seed % 9, 4 + 3 * (seed % 7), 0.8) for seed in range(40)]
    cases += [case(100 + seed, 5, 6, 0.0) for seed in range(10)]
    cases += [scored(["a b"], ["a b"]), scored([""], [""]), scored(["a"], [""]), scored([""], ["a b c"])]
    cases += [scored(["the cat sat on the mat"], ["the the the the the the"])]
    versions = {"sacrebleu": sacrebleu.__version__, "rouge-score": "0.1.2"}
    json.dump({"versions": versions, "cases": cases}, sys.stdout, ensure_ascii=True, indent=0)
    print()


main()
