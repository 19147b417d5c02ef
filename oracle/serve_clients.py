"""Tests `f2 serve` with the clients that it supports.

    pip install 'lm_eval[api]==0.4.13' openai torch transformers
    python oracle/serve_clients.py target/release/f2 RUN     # a run with the plain softmax

1. lm-evaluation-harness: the log-likelihoods of a local task through `local-completions`, with the
   server's tokenizer and with the exported one, against `hf` on the exported model.
2. The `openai` package: completions, a stream, log-probabilities, and a refusal.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

TOLERANCE = 1e-4
TASK = """\
task: f2_local
dataset_path: json
dataset_kwargs:
  data_files: {data}
test_split: train
output_type: multiple_choice
doc_to_text: "{{{{start}}}}"
doc_to_choice: "{{{{ends}}}}"
doc_to_target: 0
target_delimiter: ""
metric_list:
  - metric: acc
"""


def start(program, run):
    """Starts a server on a free port; returns the process and its address."""
    command = [program, "serve", f"model={run}", "--port", "0"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    return server, server.stdout.readline().split()[-1]


def write_task(folder, vocabulary):
    """Texts of words in the model's vocabulary, each with several endings to choose from."""
    words = [word for word in vocabulary if word.strip().isalpha()][:200]
    lines = []
    for number in range(24):
        pick = [words[(number * 7 + place * 13) % len(words)] for place in range(12)]
        lines.append({"start": "".join(pick[:8]).strip(), "ends": pick[8:]})
    data = folder / "task.jsonl"
    data.write_text("".join(json.dumps(line) + "\n" for line in lines))
    (folder / "f2_local.yaml").write_text(TASK.format(data=data))


def likelihoods(model, arguments, folder):
    """The log-likelihood of every choice and whether it is greedy, as logged by lm_eval."""
    from lm_eval import simple_evaluate
    from lm_eval.tasks import TaskManager

    tasks = TaskManager(include_path=str(folder), include_defaults=False)
    found = simple_evaluate(
        model=model, model_args=arguments, tasks=["f2_local"], task_manager=tasks,
        log_samples=True, bootstrap_iters=0,
    )
    samples = sorted(found["samples"]["f2_local"], key=lambda sample: sample["doc_id"])
    pairs = [pair for sample in samples for pair in sample["filtered_resps"]]
    return [(float(log), str(greedy) == "True") for log, greedy in pairs]


def check_harness(address, exported, folder):
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(exported)
    write_task(folder, [tokenizer.decode([id]) for id in range(len(tokenizer))])
    # As in the exported model card: a tokenizer without an end-of-text token must be told how texts begin.
    prefix = "" if tokenizer.eos_token_id is not None else ",prefix_token_id=0"
    expected = likelihoods("hf", f"pretrained={exported},dtype=float32,device=cpu{prefix}", folder)
    common = f"model=model,base_url={address}/v1/completions,max_length=64,num_concurrent=4"
    for backend in ("remote", f"huggingface,tokenizer={exported}"):
        found = likelihoods("local-completions", f"{common},tokenizer_backend={backend}", folder)
        assert len(found) == len(expected) > 0
        worst = max(abs(mine[0] - theirs[0]) for mine, theirs in zip(found, expected))
        greedy = sum(mine[1] != theirs[1] for mine, theirs in zip(found, expected))
        name = backend.split(",")[0]
        print(f"lm_eval, {name}: {len(found)} log-likelihoods, largest difference {worst:.2e}, "
              f"{greedy} differ in greedy")
        assert worst <= TOLERANCE and greedy == 0


def check_openai(address):
    import openai

    client = openai.OpenAI(base_url=f"{address}/v1", api_key="none", max_retries=0)
    ask = dict(model="model", prompt="a", max_tokens=20, seed=1, logprobs=3)
    whole = client.completions.create(**ask)
    choice = whole.choices[0]
    assert len(choice.logprobs.tokens) == whole.usage.completion_tokens
    for own, top in zip(choice.logprobs.token_logprobs, choice.logprobs.top_logprobs):
        assert own <= max(top.values())
    parts = list(client.completions.create(stream=True, **ask))
    assert "".join(part.choices[0].text for part in parts) == choice.text
    assert [model.id for model in client.models.list()] == ["model"]
    try:
        client.completions.create(model="model", prompt="a", logprobs=99)
        raise AssertionError("logprobs=99 was not refused")
    except openai.BadRequestError as error:
        assert error.param == "logprobs"
    print(f"openai: a stream of {len(parts)} parts is the whole text; refusals are understood")


def main():
    program, run = sys.argv[1:]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        exported = folder / "exported"
        subprocess.run([program, "export", run, "--out", str(exported)], check=True)
        server, address = start(program, run)
        try:
            check_openai(address)
            check_harness(address, exported, folder)
        finally:
            server.terminate()
            assert server.wait() == 0


if __name__ == "__main__":
    main()
