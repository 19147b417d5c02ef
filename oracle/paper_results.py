"""The paper's greedy results in the form of `f2 eval --json`.

    python3 oracle/paper_results.py

reads crates/f2-metrics/tests/fixtures/paper_greedy.json, the numbers as the paper prints them,
and writes crates/f2-cli/tests/fixtures/paper_greedy.json: fractions, and counts for Uniq.
"""
import json
from decimal import Decimal
from pathlib import Path

CRATES = Path(__file__).parent.parent / "crates"
PRINTED = CRATES / "f2-metrics/tests/fixtures/paper_greedy.json"
RESULTS = CRATES / "f2-cli/tests/fixtures/paper_greedy.json"


def scaled(value, factor):
    """Exact in decimal, so that 29.9 becomes exactly 0.299."""
    return float(Decimal(str(value)) * Decimal(factor))


def orders(row, stem):
    return [scaled(row[f"{stem}{n}"], "0.01") for n in (1, 2, 3)]


def own(row):
    return dict(self_bleu=orders(row, "sb"), distinct=orders(row, "d"),
                rep=scaled(row["rep"], "0.01"), uniq=int(scaled(row["uniq_k"], "1000")))


def main():
    results = []
    for corpus, rows in json.loads(PRINTED.read_text())["greedy"].items():
        human = own(rows.pop("Human"))
        for name, row in rows.items():
            results.append(dict(name=name, set=corpus, convention="paper", ppl=row["ppl"],
                                kld=row["kld"], ms_jaccard=orders(row, "msj"), **own(row),
                                human=human))
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
