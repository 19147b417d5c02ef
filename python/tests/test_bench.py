"""The load generator for `f2 serve` (bench/serve.py) reports invalid responses, and ends."""

import asyncio
import itertools
import threading
from argparse import Namespace
from importlib import import_module

from conftest import REPOSITORY

GOOD = 'data: {"choices": [{"text": "a text"}]}\n\n'
DONE = "data: [DONE]\n\n"
# The rest of a response after its first line, by the name under which the client counts it.
ANSWERS = {
    "text": f"\r\n{GOOD}{DONE}",
    "another text": f"\r\n{GOOD}{GOOD}{DONE}",
    "ValueError": f"\r\n{GOOD}",
    "KeyError": f'\r\n{GOOD}data: {{"error": {{"message": "no memory"}}}}\n\n{DONE}',
    "JSONDecodeError": f"\r\n{GOOD}data: {{\n\n{DONE}",
    "LimitOverrunError": f"x: {'y' * 100_000}\r\n\r\n",
    "IncompleteReadError": None,
}


class BadServer:
    """A server that sends the invalid responses in turn, on new or reused connections."""

    def __init__(self):
        self.loop = asyncio.new_event_loop()
        self.answers = itertools.cycle(ANSWERS.values())
        self.server = self.loop.run_until_complete(asyncio.start_server(self.serve, "127.0.0.1", 0))
        self.address = "http://127.0.0.1:%d" % self.server.sockets[0].getsockname()[1]
        threading.Thread(target=self.loop.run_forever, daemon=True).start()

    async def serve(self, reader, writer):
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                await reader.readexactly(int(head.split("Content-Length: ")[1].split("\r\n")[0]))
                answer = next(self.answers)
                await asyncio.sleep(0.02)
                if answer is None:
                    break
                body = answer.split("\r\n", 1)[1]
                length = f"Content-Length: {len(body)}\r\n"
                writer.write(f"HTTP/1.1 200 OK\r\n{length}{answer}".encode())
        except (EOFError, ConnectionError):
            pass
        writer.close()


def test_bad_answers_are_counted_by_their_kind(monkeypatch):
    monkeypatch.syspath_prepend(REPOSITORY / "bench")
    server = BadServer()
    work = {"prompts": [[1]], "tokens": 1, "texts": ["a text"]}
    # The first client streams; clients that do not stream cannot parse events.
    seen = import_module("serve").load(Namespace(seconds=2, clients=1, processes=1), server.address, work)
    assert seen["texts"] > 0
    kinds = {kind.split(":")[0] for kind in seen["others"]}
    assert kinds == set(ANSWERS) - {"text"}
