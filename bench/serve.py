"""`f2 serve` under load: many clients over loopback, with every text compared with that of `f2 generate`.

    cargo build --release
    python bench/serve.py target/release/f2 RUN                                  # 64 clients for 60 s
    python bench/serve.py target/release/f2 RUN --device cuda --clients 512      # on a GPU
    python bench/serve.py target/release/f2 RUN --beside                         # and Hugging Face's generate

RUN is a run folder or a model folder. Only Python's standard library is needed, except for --beside, which exports the
model, starts bench/transformers_server.py with it (`pip install torch transformers`) and sends it the same requests.

Every client sends one request after the other: prompts of 10 to 50 random ids, `--tokens` new tokens by top-k with
k = 3. Every fourth client streams, which gives the latency of the first token. Before and after,
`f2 generate --batch CLIENTS` generates the same texts: they must be equal, and its rate is compared with the server's.
Prints a Markdown table and appends all results to serve.jsonl; the exit code is 1 if a response was neither a text nor
429, or if a text differed.
"""

import argparse
import asyncio
import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

STREAMS = 4  # every fourth client
TOP_K = 3
SEED = 1


class Connection:
    """A connection that stays open from one request to the next."""

    def __init__(self, address):
        self.host, port = address.removeprefix("http://").split(":")
        self.port, self.reader = int(port), None

    async def ask(self, method, path, body=None):
        """The status, the headers, and the body in the parts received, each with its time."""
        if self.reader is None:
            self.reader, self.writer = await asyncio.open_connection(self.host, self.port)
        data = b"" if body is None else json.dumps(body).encode()
        head = f"{method} {path} HTTP/1.1\r\nHost: {self.host}:{self.port}\r\nContent-Length: {len(data)}\r\n"
        self.writer.write(f"{head}Content-Type: application/json\r\n\r\n".encode() + data)
        first, *lines = (await self.reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines if line)}
        parts = []
        if headers.get("transfer-encoding") == "chunked":
            while size := int(await self.reader.readuntil(b"\r\n"), 16):
                parts.append((time.time(), (await self.reader.readexactly(size + 2))[:-2]))
            await self.reader.readexactly(2)
        else:
            parts.append((time.time(), await self.reader.readexactly(int(headers["content-length"]))))
        return int(first.split()[1]), headers, parts

    def close(self):
        if self.reader is not None:
            self.writer.close()
            self.reader = None


def text_of(parts, streamed):
    """The text of a response, sent whole or as events."""
    body = b"".join(part for _, part in parts).decode()
    if not streamed:
        return json.loads(body)["choices"][0]["text"]
    events = [event.removeprefix("data: ") for event in body.split("\n\n") if event]
    if events[-1:] != ["[DONE]"]:
        raise ValueError(f"the stream does not end with [DONE]: {body[-200:]!r}")
    return "".join(json.loads(event)["choices"][0]["text"] for event in events[:-1])


def named(error):
    """The name under which a response with an error is counted."""
    return f"{type(error).__name__}: {error}"


async def client(number, address, work, until, results):
    """Sends requests until the time is up. A result has kind, start, first part, end and prompt."""
    connection, streamed = Connection(address), number % STREAMS == 0
    order = random.Random(number)
    await asyncio.sleep(order.random())  # clients do not start in step
    while time.time() < until:
        prompt = order.randrange(len(work["prompts"]))
        body = dict(prompt=work["prompts"][prompt], max_tokens=work["tokens"], top_k=TOP_K, seed=SEED,
                    ignore_eos=True, stream=streamed)
        began = time.time()
        try:
            status, headers, parts = await connection.ask("POST", "/v1/completions", body)
        except (OSError, EOFError, asyncio.LimitOverrunError, LookupError, ValueError) as error:
            results.append((named(error), began, None, time.time(), prompt))
            connection.close()
            continue
        if status == 429:
            results.append(("429", began, None, time.time(), prompt))
            await asyncio.sleep(float(headers.get("retry-after", 1)))
            continue
        if status != 200:
            results.append((f"{status}: {parts[0][1][:200]}", began, None, time.time(), prompt))
            continue
        expected = work["texts"] and work["texts"][prompt]
        try:
            same = expected is None or text_of(parts, streamed) == expected
        except (LookupError, TypeError, ValueError) as error:
            results.append((named(error), began, None, time.time(), prompt))
            continue
        first = parts[0][0] if streamed else None
        results.append(("text" if same else "another text", began, first, parts[-1][0], prompt))
    connection.close()


def clients(numbers, address, work, until):
    """A process that runs clients."""
    async def all_of_them():
        results = []
        await asyncio.gather(*(client(number, address, work, until, results) for number in numbers))
        return results

    return asyncio.run(all_of_them())


def load(a, address, work):
    """Runs the clients and summarises their results."""
    began = time.time()
    until = began + a.seconds
    shares = [range(first, a.clients, a.processes) for first in range(a.processes)]
    # If a process dies, this raises an error instead of waiting for it.
    with ProcessPoolExecutor(a.processes) as processes:
        working = [processes.submit(clients, share, address, work, until) for share in shares]
        results = [result for share in working for result in share.result()]
    # A text counts by the share of its time within the window in which all clients are running.
    window = (began + min(5, a.seconds / 5), until)
    inside = lambda began, end: max(0, min(end, window[1]) - max(began, window[0])) / (end - began)
    texts = [result for result in results if result[0] == "text"]
    others = {}
    for kind, *_ in results:
        if kind != "text":
            others[kind] = others.get(kind, 0) + 1
    tokens = sum(work["tokens"] * inside(began, end) for _, began, _, end, _ in texts)
    first = sorted(first - began for _, began, first, _, _ in texts if first is not None)
    whole = sorted(end - began for _, began, _, end, _ in texts)
    quantile = lambda values, share: values[min(len(values) - 1, int(share * len(values)))] if values else None
    return dict(texts=len(texts), others=others, tokens_per_second=tokens / (window[1] - window[0]),
                first_token=[quantile(first, 0.5), quantile(first, 0.95)],
                whole_text=[quantile(whole, 0.5), quantile(whole, 0.95)])


def start(command):
    """Starts a server; returns the process and its address, the last word of its first line."""
    server = subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, text=True)
    line = server.stdout.readline()
    if not line:
        sys.exit(f"`{command[0]} {command[1]} …` ended with {server.wait()}")
    return server, line.split()[-1]


def stop(server):
    """Stops the server by SIGTERM, after which it completes requests in progress."""
    server.terminate()
    return server.wait(60)


def generate(a, given, out):
    """The rate of `f2 generate`, and its texts."""
    command = [a.program, "generate", a.model, "--prompts", given, "--new-tokens", a.tokens, "--top-k", TOP_K,
               "--seed", SEED, "--no-stop", "--batch", a.clients, "--device", a.device, *a.threads, "--out", out]
    run = subprocess.run(list(map(str, command)), stderr=subprocess.PIPE, text=True)
    if run.returncode:
        sys.exit(run.stderr)
    # The last match, as progress lines also have a rate.
    rate = float(re.findall(r"([\d.]+) tokens/s", run.stderr)[-1])
    return rate, [json.loads(line)["text"] for line in open(out)]


def print_table(a, rates, runs):
    name = f"{a.clients} clients, {a.seconds:.0f} s, {a.tokens} tokens a text, {a.device}"
    print(f"{name}\n\n| | tokens/s | first token: median, 95 % | whole text: median, 95 % | texts | other |")
    print("|---|--:|--:|--:|--:|---|")
    print(f"| f2 generate --batch {a.clients} | {rates[0]:.0f}, {rates[1]:.0f} | | | | |")
    milliseconds = lambda pair: ", ".join("" if each is None else f"{1000 * each:.0f} ms" for each in pair)
    for name, run in runs.items():
        others = ", ".join(f"{kind}: {count}" for kind, count in run["others"].items()) or "none"
        print(f"| {name} | {run['tokens_per_second']:.0f} | {milliseconds(run['first_token'])} "
              f"| {milliseconds(run['whole_text'])} | {run['texts']} | {others} |")
    share = runs["f2 serve"]["tokens_per_second"] / max(rates)
    print(f"\nf2 serve over f2 generate (the faster of both runs): {100 * share:.0f} %")
    if "transformers" in runs:
        times = runs["f2 serve"]["tokens_per_second"] / runs["transformers"]["tokens_per_second"]
        print(f"f2 serve over transformers: {times:.1f}")


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("program", type=Path)
    arguments.add_argument("model", type=Path)
    arguments.add_argument("--device", default="cpu")
    arguments.add_argument("--threads", type=int, help="of f2 and of transformers")
    arguments.add_argument("--clients", type=int, default=64)
    arguments.add_argument("--seconds", type=float, default=60)
    arguments.add_argument("--tokens", type=int, default=100)
    arguments.add_argument("--processes", type=int, default=max(1, (os.cpu_count() or 1) // 4), help="of clients")
    arguments.add_argument("--beside", action="store_true", help="also Hugging Face's generate behind HTTP")
    arguments.add_argument("--log", type=Path, default=Path("serve.jsonl"))
    a = arguments.parse_args()
    a.threads = ["--threads", a.threads] if a.threads else []
    a.processes = min(a.processes, a.clients)
    with tempfile.TemporaryDirectory() as scratch:
        given, out, exported = (Path(scratch, name) for name in ["prompts.jsonl", "out.jsonl", "exported"])
        command = [a.program.resolve(), "serve", f"model={a.model}", "--port", 0, "--device", a.device]
        server, address = start([*command, "--max-batch", a.clients, *a.threads])
        try:
            _, _, parts = asyncio.run(Connection(address).ask("GET", "/v1/models"))
            vocabulary = json.loads(parts[0][1])["data"][0]["f2"]["vocabulary"]
            draw = random.Random(0)
            prompts = [[draw.randrange(vocabulary) for _ in range(draw.randint(10, 50))]
                       for _ in range(4 * a.clients)]
            given.write_text("".join(json.dumps({"ids": ids}) + "\n" for ids in prompts))
            rates, texts = [0, 0], None
            rates[0], texts = generate(a, given, out)
            work = dict(prompts=prompts, tokens=a.tokens, texts=texts)
            runs = {"f2 serve": load(a, address, work)}
            rates[1], again = generate(a, given, out)
        finally:
            code = stop(server)
        faults = [] if code == 0 else [f"the server ended with {code}"]
        faults += [] if again == texts else ["f2 generate wrote two texts"]
        faults += [kind for kind in runs["f2 serve"]["others"] if kind != "429"]
        if a.beside:
            subprocess.run([a.program, "export", a.model, "--out", exported], check=True)
            wrapper = [sys.executable, Path(__file__).with_name("transformers_server.py"), exported]
            server, address = start([*wrapper, "--device", a.device, "--max-batch", a.clients, *a.threads])
            try:
                runs["transformers"] = load(a, address, dict(work, texts=None))
            finally:
                server.kill()
                server.wait()
    print_table(a, rates, runs)
    with open(a.log, "a") as log:
        settings = dict(device=a.device, clients=a.clients, seconds=a.seconds, tokens=a.tokens)
        log.write(json.dumps(dict(**settings, generate=rates, runs=runs)) + "\n")
    if faults:
        sys.exit("failed: " + "; ".join(faults))


if __name__ == "__main__":
    main()
