"""MefMax in Python compared with the fixtures and the program."""

import json

import pytest
from conftest import REPOSITORY, run
from f2_softmax import mefmax, ranks

FIXTURE = REPOSITORY / "crates/f2-classes/tests/fixtures/mefmax.json"
METHODS = ["greedy", "author", "exact", "equal-tokens", "equal-frequency"]
COUNTS = [1000 // (rank + 1) for rank in range(200)]


@pytest.mark.parametrize("method", METHODS)
def test_equals_the_program(tmp_path, method):
    (tmp_path / "counts.json").write_text(json.dumps(COUNTS))
    run("classes", "--counts", tmp_path / "counts.json", "--method", method, "--out", tmp_path / "program.json")
    selection = mefmax(COUNTS, method=method)
    selection.save(tmp_path / "python.json")
    written = (tmp_path / "program.json").read_text()
    assert (tmp_path / "python.json").read_text() == written
    about = json.loads(written)
    assert (selection.ends, selection.objective) == (about["ends"], about["objective"])
    assert selection.curve == [(trial["k"], trial["objective"]) for trial in about["curve"]]
    assert selection.masses == [entry["mass"] for entry in about["classes"]]


def test_any_kind_of_counts():
    numpy = pytest.importorskip("numpy")
    expected = mefmax(COUNTS).ends
    assert mefmax(tuple(COUNTS)).ends == expected
    assert mefmax(numpy.array(COUNTS)).ends == expected
    assert mefmax(count for count in COUNTS).ends == expected
    assert mefmax(COUNTS, k=7).k == 7
    assert "ends=[" in repr(mefmax(COUNTS))


def test_ranks_are_those_of_the_selection():
    counts = [3, 10, 1, 9, 3]
    assert ranks(counts) == [2, 0, 4, 1, 3]
    assert mefmax(counts).ids == [1, 3, 0, 4, 2]


@pytest.mark.parametrize(
    "counts, options, error, says",
    [
        ([], {}, ValueError, "there are no counts"),
        ([0, 0], {}, ValueError, "all 2 counts are zero"),
        ([1, -1], {}, ValueError, "count 1 is -1"),
        ([1, 2**64], {}, ValueError, "count 1 is 18446744073709551616"),
        ([2**63, 2**63], {}, ValueError, "add up to 2\\^64"),
        ([1, 1.5], {}, TypeError, "count 1 is 1.5"),
        ([1, "a"], {}, TypeError, "count 1 is 'a'"),
        ("12", {}, TypeError, "must be a list of whole numbers"),
        (5, {}, TypeError, "must be a list of whole numbers"),
        ([1, 2], {"method": "best"}, ValueError, "best is not a method"),
        ([1, 2], {"k": 0}, ValueError, "0 classes"),
        ([1, 2], {"k": 3}, ValueError, "only 2 tokens"),
        ([1, 2], {"unseen": 2}, ValueError, "unseen must be 0 or 1"),
    ],
)
def test_bad_input_is_refused(counts, options, error, says):
    with pytest.raises(error, match=says):
        mefmax(counts, **options)


def test_a_file_that_cannot_be_written_is_an_os_error(tmp_path):
    with pytest.raises(OSError):
        mefmax([2, 1]).save(tmp_path / "nowhere" / "classes.json" / "x")
