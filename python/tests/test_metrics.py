"""Metrics in Python compared with the program and the fixtures, for every input type."""

import json
import random
import sys

import pytest
from conftest import REPOSITORY, run_json
from f2_softmax import metrics

FIXTURES = REPOSITORY / "crates/f2-metrics/tests/fixtures"


def texts(seed, count=40, length=30, vocabulary=50):
    draw = random.Random(seed)
    # Skewed, so that n-grams repeat.
    return [[int(vocabulary * draw.random() ** 3) for _ in range(length)] for _ in range(count)]


def as_words(ids):
    return [" ".join(f"w{token}" for token in text) for text in ids]


HUMAN, MODEL = texts(1), texts(2)


def write(path, ids):
    path.write_text("".join(json.dumps({"ids": text}) + "\n" for text in ids))
    return path


def printed(record):
    """The values of `f2 eval --json` under the names of `compute_all`."""
    values = {name: record[name] for name in ("kld", "rep", "uniq")}
    for name in ("ms_jaccard", "self_bleu", "distinct"):
        values |= {f"{name}_{order}": value for order, value in enumerate(record[name], 1)}
    return values


@pytest.mark.parametrize("convention", ["paper", "textbook"])
def test_equals_the_program_to_the_last_bit(tmp_path, convention):
    hyps, refs = write(tmp_path / "hyps.jsonl", MODEL), write(tmp_path / "refs.jsonl", HUMAN)
    record = run_json("eval", "--hyps", hyps, "--refs", refs, "--convention", convention)
    scores = metrics.compute_all(MODEL, HUMAN, convention=convention)
    expected = printed(record)
    assert {name: scores[name] for name in expected} == expected
    assert (scores.texts, scores.tokens) == (record["texts"], record["tokens"])
    single = {
        "kld": metrics.kld(MODEL, HUMAN, convention),
        "rep": metrics.repetition(MODEL),
        "uniq": metrics.uniq(MODEL),
    }
    for name, values in (
        ("self_bleu", metrics.self_bleu(MODEL, 3, convention)),
        ("distinct", metrics.distinct(MODEL, 3, convention)),
        ("ms_jaccard", metrics.ms_jaccard(MODEL, HUMAN, 3, convention)),
    ):
        single |= {f"{name}_{order}": value for order, value in enumerate(values, 1)}
    assert single == expected


def test_words_equal_the_program(tmp_path):
    hyps, refs = tmp_path / "hyps.txt", tmp_path / "refs.txt"
    hyps.write_text("\n".join(as_words(MODEL)) + "\n")
    refs.write_text("\n".join(as_words(HUMAN)) + "\n")
    expected = printed(run_json("eval", "--hyps", hyps, "--refs", refs, "--words"))
    for model, human in [
        (as_words(MODEL), as_words(HUMAN)),
        ([text.split() for text in as_words(MODEL)], [tuple(text.split()) for text in as_words(HUMAN)]),
    ]:
        scores = metrics.compute_all(model, human)
        assert {name: scores[name] for name in expected} == expected


def test_bands_and_intervals_equal_the_program(tmp_path):
    counts = [7 * (60 - token) % 41 + 1 for token in range(60)]
    (tmp_path / "counts.json").write_text(json.dumps(counts))
    hyps, refs = write(tmp_path / "hyps.jsonl", MODEL), write(tmp_path / "refs.jsonl", HUMAN)
    record = run_json(
        "eval", "--hyps", hyps, "--refs", refs, "--counts", tmp_path / "counts.json", "--bootstrap", 50, "--seed", 3
    )
    scores = metrics.compute_all(MODEL, HUMAN, counts=counts, bootstrap=50, seed=3)
    assert metrics.bands(MODEL, counts) == {name: scores[name] for name in metrics.BANDS}
    flat = json.dumps(record)
    for name in metrics.BANDS:
        assert json.dumps(scores[name]) in flat
    for name, (low, high) in scores.intervals.items():
        assert json.dumps(low) in flat and json.dumps(high) in flat, name
        assert low <= scores[name] <= high


def test_self_bleu_equals_nltk():
    frozen = json.loads((FIXTURES / "nltk_self_bleu.json").read_text())
    for case in frozen["sets"]:
        means = [sum(scores) / len(scores) for scores in zip(*(each["bleu"] for each in case["each"]))]
        assert metrics.self_bleu(case["texts"], len(means), "textbook") == pytest.approx(means, abs=1e-12)


def test_scores_against_own_references_equal_sacrebleu_and_rouge_score():
    for case in json.loads((FIXTURES / "matched.json").read_text())["cases"]:
        texts = case["texts"], case["references"]
        assert metrics.corpus_bleu(*texts) == pytest.approx(case["bleu"], abs=1e-9)
        assert metrics.chrf(*texts) == pytest.approx(case["chrf"], abs=1e-9)
        assert metrics.chrf(*texts, word_order=2) == pytest.approx(case["chrf_plus"], abs=1e-9)
        assert list(metrics.rouge(*texts).values()) == pytest.approx(case["rouge"], abs=1e-9)
    with pytest.raises(ValueError, match="2 texts and 1 references"):
        metrics.rouge(["a", "b"], ["a"])
    with pytest.raises(TypeError, match="hyps must be strings"):
        metrics.chrf("ab", ["a", "b"])


def test_bleu_equals_nltk():
    bleu_score = pytest.importorskip("nltk.translate.bleu_score")
    smooth = bleu_score.SmoothingFunction().method1
    for order in (1, 2, 3):
        weights = [1 / order] * order
        each = [bleu_score.sentence_bleu(HUMAN, text, weights, smooth) for text in MODEL]
        assert metrics.bleu(MODEL, HUMAN, order, "textbook")[-1] == pytest.approx(sum(each) / len(each), abs=1e-12)


def test_bleu_of_each_text_against_the_others_is_self_bleu():
    each = [metrics.bleu([text], MODEL[:number] + MODEL[number + 1 :]) for number, text in enumerate(MODEL)]
    means = [sum(values) / len(values) for values in zip(*each)]
    assert means == pytest.approx(metrics.self_bleu(MODEL), abs=1e-12)


def test_every_kind_of_ids_scores_alike():
    numpy = pytest.importorskip("numpy")
    expected = metrics.compute_all(MODEL, HUMAN)
    kinds = [
        tuple(map(tuple, MODEL)),
        (text for text in MODEL),
        numpy.array(MODEL, dtype=numpy.uint32),
        numpy.array(MODEL),
        numpy.array(MODEL, dtype=numpy.uint8),
        numpy.asfortranarray(MODEL),
        numpy.array(MODEL, dtype=numpy.uint32)[:, ::-1][:, ::-1],
        [numpy.array(text) for text in MODEL],
        [[numpy.int64(token) for token in text] for text in MODEL],
    ]
    for kind in kinds:
        assert metrics.compute_all(kind, HUMAN) == expected


def test_arrays_are_not_copied():
    numpy = pytest.importorskip("numpy")
    from f2_softmax._texts import prepared

    array = numpy.array(MODEL, dtype=numpy.uint32)
    flat, ends = prepared("texts", array)
    assert numpy.shares_memory(flat, array) and len(ends) == len(MODEL)


def test_tensors_and_nested_tensors():
    torch = pytest.importorskip("torch")
    ragged = [text[: 6 + number % 20] for number, text in enumerate(MODEL)]
    expected = metrics.compute_all(ragged, HUMAN)
    tensors = [torch.tensor(text) for text in ragged]
    assert metrics.compute_all(tensors, torch.tensor(HUMAN)) == expected
    for layout in (torch.jagged, torch.strided):
        nested = torch.nested.nested_tensor(tensors, layout=layout)
        assert metrics.compute_all(nested, HUMAN) == expected


def test_pandas():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"text": as_words(MODEL)})
    scores = metrics.compute_all(frame["text"], pandas.Series(as_words(HUMAN)), bootstrap=10)
    table = scores.to_pandas("model")
    assert table.loc["uniq", "model"] == scores["uniq"]
    assert list(table.columns) == ["model", "low", "high"]


def test_compute_is_that_of_evaluate():
    scores = metrics.compute(predictions=as_words(MODEL), references=as_words(HUMAN), convention="textbook")
    assert scores["kld"] == metrics.kld(as_words(MODEL), as_words(HUMAN), "textbook")
    assert "frequent" not in scores


def test_missing_values_have_reasons():
    scores = metrics.compute_all([[1, 2, 3, 4, 5, 6]])
    assert scores["self_bleu_1"] is None and "at least two texts" in scores.undefined[0]


def refusals():
    ids, words = [[1, 2]], ["a b"]
    yield "no texts", lambda: metrics.self_bleu([]), ValueError, "at least two texts"
    yield "no hypotheses", lambda: metrics.compute_all([]), ValueError, "there are no texts"
    yield "no references", lambda: metrics.bleu(ids, []), ValueError, "there are no references"
    yield "one string", lambda: metrics.self_bleu("a b"), TypeError, "must be a list of texts"
    yield "a number", lambda: metrics.uniq(7), TypeError, "must be a list of texts"
    yield "numbers", lambda: metrics.uniq([1, 2]), TypeError, "text 0 is a int"
    yield "none", lambda: metrics.uniq([None]), TypeError, "text 0 is a NoneType"
    yield "floats", lambda: metrics.uniq([[1.5]]), TypeError, "token 0 of text 0 is a float"
    yield "mixed tokens", lambda: metrics.uniq([[1, "a"]]), TypeError, "both token ids and words"
    yield "mixed texts", lambda: metrics.uniq([[1], "a"]), TypeError, "both token ids and words"
    yield "mixed sides", lambda: metrics.kld(ids, words), TypeError, "cannot be compared"
    yield "negative", lambda: metrics.uniq([[1], [2, -1]]), ValueError, "token 1 of text 1 is -1"
    yield "too large", lambda: metrics.uniq([[2**32]]), ValueError, "ids go from 0 to 4294967295"
    yield "no order", lambda: metrics.self_bleu(ids * 2, 0), ValueError, "max_order must be from 1"
    yield "convention", lambda: metrics.kld(ids, ids, "mine"), ValueError, "unknown convention mine"
    yield "no draws", lambda: metrics.compute_all(ids, bootstrap=0), ValueError, "at least 1"
    yield "outside", lambda: metrics.bands([[5]], [3, 1]), ValueError, "token id 5"
    yield "outside, renamed", lambda: metrics.bands([[5]], [1, 3]), ValueError, "token id 5"
    yield "no counts", lambda: metrics.bands(ids, []), ValueError, "there are no counts"
    yield "zero counts", lambda: metrics.bands(ids, [0, 0]), ValueError, "all 2 counts are zero"
    yield "word bands", lambda: metrics.bands(words, [1, 2]), ValueError, "words cannot be looked up"
    yield "all empty", lambda: metrics.kld([[]], [[]]), ValueError, "hold no tokens"


@pytest.mark.parametrize("name, call, error, says", list(refusals()), ids=lambda value: value if isinstance(value, str) else "")
def test_bad_input_is_refused(name, call, error, says):
    with pytest.raises(error, match=says):
        call()


def test_bad_arrays_are_refused():
    numpy = pytest.importorskip("numpy")
    for array, error, says in [
        (numpy.array([1, 2]), ValueError, "two dimensions"),
        (numpy.array([[1.5]]), TypeError, "token ids are integers"),
        (numpy.array([[-1]]), ValueError, "holds -1"),
        (numpy.array([[2**32]]), ValueError, "holds 4294967296"),
        ([numpy.array([[1]])], ValueError, "text 0 has 2 dimensions"),
    ]:
        with pytest.raises(error, match=says):
            metrics.uniq(array)


def test_no_module_is_imported_that_is_not_needed():
    import subprocess

    code = "import f2_softmax, sys; print([m for m in ('numpy', 'torch', 'pandas') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"
