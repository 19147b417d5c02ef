"""Makes pairs from articles: the first sentence is the target, the words after it the source.

    python bench/make_pairs.py wiki-en/train-00.txt.zst --most 40000 --out train.jsonl

The text has one paragraph per line and a blank line between documents, each of which begins with `= Title =` (.zst
files are decompressed by the `zstd` program). An article is skipped if the first sentence or the text after it is
shorter than the limits; with `--task title` the title is the target instead of the sentence.
"""

import argparse
import json
import re
import subprocess
from pathlib import Path

TITLE = re.compile(r"= (.+) =")
# A full stop after at least two lower-case letters or a bracket and before a capital, to exclude initials.
SENTENCE = re.compile(r"(?<=[a-z)\]][a-z)\]])\.\s+(?=[A-Z])")


def documents(path):
    if path.suffix == ".zst":
        text = subprocess.run(["zstd", "-dcq", path], stdout=subprocess.PIPE, check=True).stdout.decode()
    else:
        text = path.read_text()
    for document in text.split("\n\n"):
        lines = [line.strip() for line in document.split("\n") if line.strip()]
        title = TITLE.fullmatch(lines[0]) if lines else None
        if title and len(lines) > 1:
            yield title[1], lines[1:]


def pair(title, lines, arguments):
    """The source, the text after the first sentence, and the target: that sentence or the title."""
    prose = [line for line in lines if not line.startswith("=")]
    words = " ".join(prose).split()
    text = " ".join(words[: arguments.source_words + arguments.target_words])
    parts = SENTENCE.split(text, maxsplit=1)
    if len(parts) < 2:
        return None
    first, rest = parts[0] + ".", " ".join(parts[1].split()[: arguments.source_words])
    source, target = (rest, first) if arguments.task == "sentence" else (first + " " + rest, title)
    short = len(rest.split()) < arguments.source_words // 2
    if short or not 1 <= len(target.split()) <= arguments.target_words:
        return None
    return {"source": source, "target": target}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("texts", type=Path, nargs="+")
    parser.add_argument("--task", choices=["sentence", "title"], default="sentence")
    parser.add_argument("--source-words", type=int, default=80)
    parser.add_argument("--target-words", type=int, default=40)
    parser.add_argument("--most", type=int)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    written = 0
    with open(arguments.out, "w") as out:
        for path in arguments.texts:
            for title, lines in documents(path):
                made = pair(title, lines, arguments)
                if made and (arguments.most is None or written < arguments.most):
                    out.write(json.dumps(made, ensure_ascii=False) + "\n")
                    written += 1
    print(f"{written} pairs in {arguments.out}")


main()
