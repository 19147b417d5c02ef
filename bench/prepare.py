"""`f2 prepare` compared with the Python `tokenizers` wheel: the same training and encoding, in alternating runs.

    pip install tokenizers numpy zstandard
    cargo build --release
    python bench/prepare.py TEXT.txt[.zst] [--vocab-size 30000] [--repeat 3]

Both learn a byte-level BPE from the documents of TEXT (blank lines between them) and encode all of
them to a file of ids. Prints the seconds of each round, the medians, their ratio, the peak memory
of each, and whether both learned the same merges and wrote the same number of tokens.
"""
import argparse, json, os, resource, shutil, statistics, subprocess, sys, tempfile, time


def documents(path):
    import zstandard
    raw = open(path, "rb")
    stream = zstandard.ZstdDecompressor().stream_reader(raw) if path.endswith(".zst") else raw
    import io
    lines = []
    for line in io.TextIOWrapper(stream, "utf-8", newline="\n"):
        if line.strip():
            lines.append(line)
        elif lines:
            yield "".join(lines)
            lines = []
    if lines:
        yield "".join(lines)


def peer(path, vocabulary, out):
    """An efficient program with the wheel: training from an iterator, encoding in batches."""
    import numpy as np
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary, min_frequency=2, show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator(documents(path), trainer)
    tokenizer.save(os.path.join(out, "tokenizer.json"))
    count = 0
    with open(os.path.join(out, "train.bin"), "wb") as file:
        def flush(batch):
            nonlocal count
            for encoding in tokenizer.encode_batch_fast(batch, add_special_tokens=False):
                count += len(encoding.ids)
                np.asarray(encoding.ids, dtype=np.uint16 if vocabulary <= 65536 else np.uint32).tofile(file)
        batch = []
        for document in documents(path):
            batch.append(document)
            if len(batch) == 1024:
                flush(batch)
                batch = []
        flush(batch)
    print(json.dumps({"tokens": count}))


def run(command):
    """Seconds, peak megabytes and standard output of a command."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"{command} failed")
    return time.perf_counter() - start, usage.ru_maxrss / 1024, output


def merges(folder):
    return [tuple(pair) for pair in json.load(open(os.path.join(folder, "tokenizer.json")))["model"]["merges"]]


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("text")
    arguments.add_argument("--vocab-size", type=int, default=30000)
    arguments.add_argument("--repeat", type=int, default=3)
    arguments.add_argument("--f2", default="target/release/f2")
    arguments.add_argument("--peer-into", help=argparse.SUPPRESS)
    given = arguments.parse_args()
    if given.peer_into:
        return peer(given.text, given.vocab_size, given.peer_into)
    folder = tempfile.mkdtemp()
    ours_out, theirs_out = os.path.join(folder, "ours"), os.path.join(folder, "theirs")
    os.mkdir(theirs_out)
    ours = [given.f2, "prepare", "--train", given.text, "--vocab-size", str(given.vocab_size),
            "--out", ours_out, "--force", "--json"]
    theirs = [sys.executable, __file__, given.text, "--vocab-size", str(given.vocab_size), "--peer-into", theirs_out]
    seconds, memory = {"f2": [], "tokenizers": []}, {"f2": 0, "tokenizers": 0}
    for turn in range(given.repeat):
        for name, command in [("f2", ours), ("tokenizers", theirs)]:
            took, peak, output = run(command)
            seconds[name].append(took)
            memory[name] = max(memory[name], peak)
            tokens = json.loads(output)
            tokens = tokens["splits"][0]["tokens"] if name == "f2" else tokens["tokens"]
            print(f"turn {turn + 1}: {name} {took:.1f} s, {peak:.0f} MB, {tokens} tokens", flush=True)
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    same = merges(ours_out) == merges(theirs_out)
    print(f"median: f2 {medians['f2']:.1f} s, tokenizers {medians['tokenizers']:.1f} s, "
          f"ratio {medians['tokenizers'] / medians['f2']:.2f}; peak memory {memory['f2']:.0f} and "
          f"{memory['tokenizers']:.0f} MB; same merges: {same}")
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
