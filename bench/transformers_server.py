"""Hugging Face's `generate` behind HTTP, for bench/serve.py: a server without continuous batching.

    python bench/transformers_server.py EXPORTED --device cpu --max-batch 64

needs `pip install torch transformers`. Takes the requests of `POST /v1/completions` that bench/serve.py
sends. All waiting requests, up to --max-batch, are continued together, padded on the left; those that arrive
meanwhile wait for the next batch. Responses have no text, only one part for each token.
"""

import argparse
import asyncio
import json
import sys
import threading
import time


class Queue:
    """The waiting requests, and the thread that processes them."""

    def __init__(self, model, a):
        self.model, self.device, self.batch = model, a.device, a.max_batch
        self.loop, self.waiting, self.some = None, [], threading.Condition()

    def put(self, request):
        with self.some:
            self.waiting.append(request)
            self.some.notify()

    def work(self):
        while True:
            with self.some:
                self.some.wait_for(lambda: self.waiting)
                batch, self.waiting = self.waiting[:self.batch], self.waiting[self.batch:]
            self.generate(batch)

    def warm_up(self, threads):
        """Chooses the fastest number of threads: on a busy machine more threads can be far slower."""
        import torch

        def seconds(threads):
            torch.set_num_threads(threads)
            began = time.perf_counter()
            self.generate([(dict(prompt=[1] * 30, max_tokens=8, top_k=3), None)] * self.batch)
            return time.perf_counter() - began

        seconds(threads[0])
        torch.set_num_threads(min(threads, key=seconds))
        print(f"{torch.get_num_threads()} threads of {threads}", file=sys.stderr)

    def generate(self, batch):
        import torch

        prompts = [body["prompt"] for body, _ in batch]
        longest = max(map(len, prompts))
        ids = torch.tensor([[0] * (longest - len(prompt)) + prompt for prompt in prompts])
        mask = torch.tensor([[0] * (longest - len(prompt)) + [1] * len(prompt) for prompt in prompts])
        tokens, top_k = batch[0][0]["max_tokens"], batch[0][0]["top_k"]
        waiting = [parts for _, parts in batch if parts]
        tell = lambda part: self.loop.call_soon_threadsafe(lambda: [parts.put_nowait(part) for parts in waiting])
        step = Steps(lambda: tell(b"token") if waiting else None)
        with torch.inference_mode():
            self.model.generate(ids.to(self.device), attention_mask=mask.to(self.device), do_sample=True,
                                top_k=top_k, max_new_tokens=tokens, min_new_tokens=tokens, pad_token_id=0,
                                streamer=step)
        if waiting:
            tell(None)


class Steps:
    """Reports every new token; `generate` passes it the prompts first."""

    def __init__(self, tell):
        self.tell, self.prompts_came = tell, False

    def put(self, value):
        if self.prompts_came:
            self.tell()
        self.prompts_came = True

    def end(self):
        pass


async def serve(queue, port):
    async def converse(reader, writer):
        while True:
            try:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
            except asyncio.IncompleteReadError:
                return writer.close()
            length = int(head.split("content-length: ")[1].split("\r\n")[0])
            body = json.loads(await reader.readexactly(length))
            parts = asyncio.Queue()
            queue.put((body, parts))
            event = json.dumps({"choices": [{"text": ""}]}).encode()
            if body["stream"]:
                writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
                chunk = lambda data: f"{len(data):x}\r\n".encode() + data + b"\r\n"
                while await parts.get():
                    writer.write(chunk(b"data: " + event + b"\n\n"))
                writer.write(chunk(b"data: [DONE]\n\n") + chunk(b""))
            else:
                while await parts.get():
                    pass
                writer.write(f"HTTP/1.1 200 OK\r\nContent-Length: {len(event)}\r\n\r\n".encode() + event)

    queue.loop = asyncio.get_running_loop()
    server = await asyncio.start_server(converse, "127.0.0.1", port, backlog=4096)
    threading.Thread(target=queue.work, daemon=True).start()
    print(f"serving at http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    await server.serve_forever()


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("model")
    arguments.add_argument("--device", default="cpu")
    arguments.add_argument("--threads", type=int)
    arguments.add_argument("--max-batch", type=int, default=64)
    arguments.add_argument("--port", type=int, default=0)
    a = arguments.parse_args()
    import torch
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(a.model, trust_remote_code=True, dtype=torch.float32)
    queue = Queue(model.to(a.device).eval(), a)
    queue.warm_up([a.threads] if a.threads else sorted({1, torch.get_num_threads()}))
    asyncio.run(serve(queue, a.port))


if __name__ == "__main__":
    main()
