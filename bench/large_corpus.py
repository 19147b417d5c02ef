"""Makes a corpus with a large training shard by repeating the training tokens of a small one.

    f2 prepare TEXT --out small
    python bench/large_corpus.py small large [--bytes 600000000]

Writes `large/train.bin` with at least the given number of bytes, and the corresponding counts and manifest; the
tokenizer and the other splits are copied. Holds one copy of the tokens in memory at a time.
"""
import argparse, array, hashlib, json, os, shutil, struct, sys, zlib

HEADER = struct.Struct("<8sIIQQII24x")


def read_shard(path):
    """The header's fields, the bytes of the tokens, and where each document starts."""
    with open(path, "rb") as file:
        fields = HEADER.unpack(file.read(HEADER.size))
        _, _, width, tokens, documents, _, _ = fields
        ids = file.read(tokens * width)
        file.seek(-(-tokens * width // 8) * 8 + HEADER.size)
        starts = array.array("Q", file.read(8 * documents))
    return fields, ids, starts


def write_repeated(path, fields, ids, starts, times):
    """Writes the shard `times` over, and its checksum last."""
    magic, version, width, tokens, documents, vocabulary, _ = fields
    checksum = 0
    with open(path, "wb") as file:
        file.write(bytes(HEADER.size))

        def put(chunk):
            nonlocal checksum
            checksum = zlib.crc32(chunk, checksum)
            file.write(chunk)

        for _ in range(times):
            put(ids)
        put(bytes(-len(ids) * times % 8))
        for copy in range(times):
            put(array.array("Q", (start + copy * tokens for start in starts)).tobytes())
        file.seek(0)
        file.write(HEADER.pack(magic, version, width, tokens * times, documents * times, vocabulary, checksum))


def file_record(path):
    with open(path, "rb") as file:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    return {"bytes": os.path.getsize(path), "sha256": sha256}


def write_manifest(folder, manifest, times):
    """The manifest of the repeated corpus, with the checksum of its own text."""
    for size in manifest["splits"]:
        if size["split"] == "train":
            size.update({key: size[key] * times for key in ("documents", "words", "bytes", "tokens")})
    for name in ("train.bin", "counts.json"):
        manifest["files"][name] = file_record(os.path.join(folder, name))
    manifest["checksum"] = ""
    text = json.dumps(manifest, indent=2, ensure_ascii=False)
    checksum = hashlib.sha256(text.encode()).hexdigest()
    with open(os.path.join(folder, "manifest.json"), "w", encoding="utf-8") as file:
        file.write(text.replace('"checksum": ""', f'"checksum": "{checksum}"', 1))


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("small")
    arguments.add_argument("large")
    arguments.add_argument("--bytes", type=int, default=600_000_000)
    given = arguments.parse_args()
    if sys.byteorder != "little":
        sys.exit("token shards are little endian, and this machine is not")
    with open(os.path.join(given.small, "manifest.json"), encoding="utf-8") as file:
        manifest = json.load(file)
    if "train.bin" not in manifest["files"]:
        sys.exit(f"{given.small} has its training tokens in several files: give a smaller corpus")
    fields, ids, starts = read_shard(os.path.join(given.small, "train.bin"))
    times = -(-given.bytes // (len(ids) + 8 * len(starts)))
    os.mkdir(given.large)
    for name in manifest["files"]:
        if name != "train.bin":
            shutil.copy(os.path.join(given.small, name), given.large)
    write_repeated(os.path.join(given.large, "train.bin"), fields, ids, starts, times)
    counts_path = os.path.join(given.large, "counts.json")
    with open(counts_path, encoding="utf-8") as file:
        counts = json.load(file)
    counts.update(tokens=counts["tokens"] * times, counts=[count * times for count in counts["counts"]])
    with open(counts_path, "w", encoding="utf-8") as file:
        json.dump(counts, file)
    write_manifest(given.large, manifest, times)
    print(f"{given.large}/train.bin: {manifest['files']['train.bin']['bytes']} bytes, {times} times {given.small}'s")


if __name__ == "__main__":
    main()
