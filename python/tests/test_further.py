"""The further metrics in Python compared with the program and the fixtures, for every input type."""

import json

import numpy
import pytest
from conftest import REPOSITORY, run_json
from f2_softmax import metrics
from test_metrics import HUMAN, MODEL, as_words

FROZEN = json.loads((REPOSITORY / "crates/f2-metrics/tests/fixtures/further.json").read_text())


@pytest.mark.parametrize("case", FROZEN["sets"])
def test_frozen_values(case):
    scores = metrics.compute_further(as_words(case["texts"]))
    for name in ("compression_ratio", "self_repetition", "diversity", "zipf", "vendi"):
        assert scores[name] == pytest.approx(case[name], rel=1e-9), name
    assert scores["mattr"] == pytest.approx(case["mattr_50"], rel=1e-9)
    for n, value in zip((2, 3, 4), case["rep_n"]):
        assert scores[f"rep_n_{n}"] == pytest.approx(value, rel=1e-9)
    for n, value in zip((1, 2, 3), case["entropy"]):
        assert scores[f"entropy_{n}"] == pytest.approx(value, rel=1e-9)


def test_the_program_gives_the_same(tmp_path):
    path = tmp_path / "model.txt"
    path.write_text("\n".join(as_words(MODEL)) + "\n")
    record = run_json("eval", "--hyps", path, "--words", "--metrics", "all")
    ours = metrics.compute_further(as_words(MODEL))
    for key, value in record["further"].items():
        values = value if isinstance(value, dict) else {"": value}
        for order, printed in values.items():
            name = f"{key}_{order}" if order else key
            if printed is not None:
                assert ours[name] == pytest.approx(printed, rel=1e-12), name


def test_ids_arrays_and_words_give_the_same():
    by_words = metrics.compute_further(as_words(MODEL), as_words(HUMAN))
    for texts, training in [(MODEL, HUMAN), (numpy.array(MODEL), numpy.array(HUMAN))]:
        scores = metrics.compute_further(texts, training)
        assert scores.pop("compression_ratio") is None
        for name, value in scores.items():
            assert value == pytest.approx(by_words[name], rel=1e-12), name


def test_points():
    draw = numpy.random.default_rng(5)
    human, model = draw.normal(size=(80, 6)), draw.normal(loc=0.3, size=(80, 6))
    score = metrics.mauve(model, human)
    assert 0.0 < score < 1.0
    assert metrics.mauve(model.astype("float32").tolist(), human.tolist()) == pytest.approx(score)
    assert metrics.coherence(human, 2 * human) == pytest.approx(1.0)
    with pytest.raises(ValueError, match="vectors of dimension 6 and 5 cannot be compared"):
        metrics.mauve(model[:, :5], human)
    with pytest.raises(ValueError, match="80 prompts for 79 texts"):
        metrics.coherence(human, model[:79])
    with pytest.raises(ValueError, match="finite numbers"):
        metrics.mauve(model * numpy.nan, human)


def test_what_is_not_defined():
    scores = metrics.compute_further([""])
    assert all(value is None for name, value in scores.items() if name != "self_repetition")
    with pytest.raises(ValueError, match="no text has 4 tokens"):
        metrics.rep_n(["a b c"], n=4)
    with pytest.raises(ValueError, match="n must be at least 1"):
        metrics.rep_n(["a b c"], n=0)
    with pytest.raises(ValueError, match="no texts"):
        metrics.self_repetition([])
