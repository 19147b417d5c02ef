"""Models exported by `f2 export`, loaded in `transformers`."""

import json
import math
import os
import re
import shutil
import subprocess
import sys

import pytest
from conftest import run, run_json

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from transformers import AutoModelForCausalLM, AutoTokenizer  # noqa: E402

F2 = {"untied": ["--set", "model.tied=false"], "tied": ["--set", "model.tied=true"]}
PROMPTS = 100


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


def load(folder):
    return AutoModelForCausalLM.from_pretrained(folder, trust_remote_code=True).eval()


def prompts(models):
    words = re.findall(r"[A-Za-z]+ [a-z]+ [a-z]+", (models.folder / "text/1.txt").read_text(encoding="utf-8"))
    chosen = list(dict.fromkeys(words))[:PROMPTS]
    assert len(chosen) == PROMPTS
    return chosen


def generated(models, run_folder, *flags):
    """The JSON lines written by `f2 generate` for all prompts."""
    path, out = models.folder / "prompts.txt", models.folder / "generated.jsonl"
    path.write_text("\n".join(prompts(models)) + "\n", encoding="utf-8")
    run("generate", run_folder, "--prompts", path, "--new-tokens", 20, "--no-stop", "--out", out, *flags)
    return [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("kind", F2)
def test_decoupled_greedy_texts_and_log_probabilities_are_those_of_the_program(models, kind):
    exported, trained = models.exported(kind, *F2[kind]), models.trained(kind)
    model, tokenizer = load(exported), AutoTokenizer.from_pretrained(exported)
    for prompt, line in zip(prompts(models), generated(models, trained, "--greedy")):
        ids = tokenizer(prompt, return_tensors="pt").input_ids
        out = model.generate(ids, max_new_tokens=20, min_new_tokens=20, eos_token_id=None)
        assert out[0, ids.shape[1] :].tolist() == line["ids"], prompt
        with torch.no_grad():
            logits = model(out).logits[0, ids.shape[1] - 1 : -1]
        # Logits are log-probabilities already.
        assert torch.allclose(logits.exp().sum(-1), torch.ones(20), atol=1e-5)
        found = logits.gather(-1, out[0, ids.shape[1] :, None])[:, 0]
        assert (found - torch.tensor(line["log_probabilities"])).abs().max() < 1e-4


@pytest.mark.parametrize("kind", [*F2, "plain"])
def test_perplexity_is_that_of_the_program(models, kind):
    settings = F2.get(kind, ["--objective", "mle"])
    exported, trained = models.exported(kind, *settings), models.trained(kind)
    text = (models.folder / "text/0.txt").read_text(encoding="utf-8")[:6000]
    path = models.folder / "scored.txt"
    path.write_text(text, encoding="utf-8")
    expected = run_json("perplexity", trained, path)
    model, tokenizer = load(exported), AutoTokenizer.from_pretrained(exported)
    ids = torch.tensor([tokenizer(text).input_ids])
    assert ids.shape[1] == expected["tokens"]
    nats, scored = 0.0, 0
    for window in ids.split(expected["window"], 1):
        if window.shape[1] > 1:
            with torch.no_grad():
                nats += model(window, labels=window).loss.item() * (window.shape[1] - 1)
            scored += window.shape[1] - 1
    assert scored == expected["scored_tokens"]
    assert math.exp(nats / scored) == pytest.approx(expected["token_perplexity"], rel=1e-5)


def test_sampling_draws_a_class_and_stays_in_it(models):
    model = load(models.exported("untied", *F2["untied"]))
    ids = torch.tensor([[1, 2, 3]]).expand(400, 3)
    torch.manual_seed(0)
    drawn = model.generate(ids, max_new_tokens=1, min_new_tokens=1, do_sample=True, top_k=1, eos_token_id=None)[:, -1]
    with torch.no_grad():
        logits = model(ids[:1]).logits[0, -1]
    ranges = model.lm_head.ranges
    # With k = 1 only the best token of each class can be drawn.
    best = [start + logits[start:end].argmax().item() for start, end in ranges]
    assert set(drawn.tolist()) <= set(best) and len(set(drawn.tolist())) > 2
    p = torch.stack([logits[start:end].exp().sum() for start, end in ranges])
    shares = torch.stack([(drawn == token).float().mean() for token in best])
    assert (p - shares).abs().max() < 0.1
    one = model.generate(ids, max_new_tokens=1, do_sample=True, class_temperature=0.0, top_k=1, eos_token_id=None)
    assert len(one[:, -1].unique()) == 1
    few = model.generate(ids, max_new_tokens=1, do_sample=True, class_top_p=1e-6, top_p=1e-6, eos_token_id=None)
    assert few[:, -1].equal(one[:, -1])


def test_larger_classes_keep_more_tokens_where_k_grows(models):
    model = load(models.exported("untied", *F2["untied"]))
    ids = torch.tensor([[1, 2, 3]]).expand(4000, 3)
    with torch.no_grad():
        logits = model(ids[:1]).logits[0, -1]
    ranges = model.lm_head.ranges
    sizes = [end - start for start, end in ranges]
    ks = [min(size, int(2 * (size / min(sizes)) ** 0.3 + 0.5)) for size in sizes]
    assert max(ks) > 2
    options = {"max_new_tokens": 1, "min_new_tokens": 1, "do_sample": True, "eos_token_id": None}
    torch.manual_seed(0)
    # Flat enough that every token that is kept is drawn.
    flat = {"temperature": 5.0, "class_temperature": 5.0}
    drawn = model.generate(ids, top_k=2, top_k_growth=0.3, **flat, **options)[:, -1]
    best = [start + logits[start:end].topk(k).indices for (start, end), k in zip(ranges, ks)]
    assert set(drawn.tolist()) == set(torch.cat(best).tolist())
    # The same with the model's own configuration; without growth, two of each class.
    model.generation_config.update(do_sample=True, top_k=2)
    model.generation_config.top_k_growth = 0.3
    assert set(model.generate(ids, **flat, **options)[:, -1].tolist()) == set(drawn.tolist())
    two = model.generate(ids, top_k_growth=0.0, **flat, **options)[:, -1]
    assert len(two.unique()) == sum(min(2, size) for size in sizes)
    for bad in (-1.0, float("nan")):
        with pytest.raises(ValueError, match="top_k_growth must be"):
            model.generate(ids[:1], top_k=2, top_k_growth=bad, **options)
    with pytest.raises(ValueError, match="top_k_growth needs top_k"):
        model.generate(ids[:1], top_k=0, top_k_growth=0.5, **options)


def test_batches_caches_beams_and_pipelines(models):
    exported = models.exported("untied", *F2["untied"])
    model, tokenizer = load(exported), AutoTokenizer.from_pretrained(exported)
    ids = tokenizer("the tokens of", return_tensors="pt").input_ids
    options = {"max_new_tokens": 12, "eos_token_id": None}
    greedy = model.generate(ids, **options)
    assert model.generate(ids.expand(3, -1), **options)[2].equal(greedy[0])
    assert model.generate(ids, use_cache=False, **options).equal(greedy)
    assert model.generate(ids, num_beams=3, **options).shape == greedy.shape
    same = model.generate(ids, custom_generate=str(exported), trust_remote_code=True, **options)
    assert same.equal(greedy)
    with pytest.raises(ValueError, match="class_"):
        model.generate(ids, joint=True, class_top_p=0.5, **options)
    with pytest.raises(ValueError, match="class_top_k must be from 1"):
        model.generate(ids, class_top_k=0, **options)
    write = transformers.pipeline("text-generation", model=str(exported), trust_remote_code=True)
    text = write("the tokens of", max_new_tokens=5, do_sample=False)[0]["generated_text"]
    assert text.startswith("the tokens of") and len(text) > len("the tokens of")


@pytest.mark.parametrize("kind", F2)
def test_trains_further_and_comes_back(models, kind, tmp_path):
    """After `save_pretrained`, both `transformers` and `f2` give equal log-probabilities."""
    exported = models.exported(kind, *F2[kind])
    model, tokenizer = load(exported), AutoTokenizer.from_pretrained(exported)
    ids = tokenizer("the softmax of the classes and the tokens", return_tensors="pt").input_ids
    before = model(ids, labels=ids).loss
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(3):
        optimiser.zero_grad()
        model(ids, labels=ids).loss.backward()
        optimiser.step()
    assert all(parameter.grad is not None for parameter in model.parameters())
    after = model(ids, labels=ids).loss
    assert after < before
    saved = tmp_path / "saved"
    model.save_pretrained(saved)
    tokenizer.save_pretrained(saved)
    again = load(saved)
    assert again(ids, labels=ids).loss == after
    assert again.generate(ids, max_new_tokens=5, eos_token_id=None).equal(
        model.generate(ids, max_new_tokens=5, eos_token_id=None)
    )
    for name in ("classes.json", "counts.json"):
        shutil.copy(exported / name, saved / name)
    run("import", saved, "--out", tmp_path / "model")
    (tmp_path / "text.txt").write_text(tokenizer.decode(ids[0]), encoding="utf-8")
    nats = run_json("perplexity", tmp_path / "model", tmp_path / "text.txt")["nats_per_token"]
    assert nats == pytest.approx(after.item(), abs=1e-5)


def test_a_torch_layer_takes_and_gives_the_weights_of_a_head(models, tmp_path):
    from f2_softmax.torch import F2Softmax

    exported = models.exported("untied", *F2["untied"])
    model = load(exported)
    head = F2Softmax(model.config.n_embd, model.config.class_ends)
    head.load_state_dict(
        {"weight": model.lm_head.tokens.weight, "class_weight": model.lm_head.weight}
    )
    ids = torch.tensor([[5, 3, 8, 13, 21, 2]])
    hidden = model.transformer(ids).last_hidden_state
    assert torch.allclose(head.log_prob(hidden), model(ids).logits, atol=1e-5)
    assert head(hidden[:, :-1], ids[:, 1:]).loss.item() == pytest.approx(model(ids, labels=ids).loss.item(), abs=1e-5)
    # A weight trained in torch is imported again.
    optimiser = torch.optim.SGD(head.parameters(), lr=0.5)
    head(hidden[:, :-1].detach(), ids[:, 1:]).loss.backward()
    optimiser.step()
    with torch.no_grad():
        model.lm_head.weight.copy_(head.class_weight)
        model.lm_head.tokens.weight.copy_(head.weight)
    saved = tmp_path / "saved"
    model.save_pretrained(saved)
    for name in ("classes.json", "counts.json", "tokenizer.json"):
        shutil.copy(exported / name, saved / name)
    run("import", saved, "--out", tmp_path / "model")
    run("export", tmp_path / "model", "--out", tmp_path / "again")
    assert torch.allclose(load(tmp_path / "again")(ids).logits, head.log_prob(hidden), atol=1e-5)


def test_loading_without_the_code_fails(models):
    exported = models.exported("untied", *F2["untied"])
    tied = models.exported("tied", *F2["tied"])
    for folder in (exported, tied):
        with pytest.raises(ValueError, match="trust_remote_code"):
            AutoModelForCausalLM.from_pretrained(folder, trust_remote_code=False)
        with pytest.raises(RuntimeError):
            transformers.GPT2LMHeadModel.from_pretrained(folder)


@pytest.mark.parametrize("kind", ["untied", "plain"])
def test_the_card_says_how_and_its_code_runs(models, kind, capsys):
    exported = models.exported(kind, *F2.get(kind, ["--objective", "mle"]))
    card = (exported / "README.md").read_text(encoding="utf-8")
    for line in ("license:", "corpus", "Steps: 80", "Validation perplexity"):
        assert line in card, line
    code = re.search(r"```python\n(.*?)```", card, re.S).group(1)
    exec(code.replace("FOLDER", str(exported)), {})
    assert "Once upon a time" in capsys.readouterr().out
    tokenizer = AutoTokenizer.from_pretrained(exported)
    config = json.loads((exported / "generation_config.json").read_text())
    assert tokenizer.eos_token_id == tokenizer.bos_token_id == config["eos_token_id"] == config["bos_token_id"]


TASK = """
task: f2_local
dataset_path: json
dataset_kwargs: {data_files: {test: TEXTS}}
test_split: test
output_type: loglikelihood_rolling
doc_to_text: ""
doc_to_target: "{{text}}"
metric_list: [{metric: word_perplexity}]
"""


@pytest.mark.parametrize("kind", ["untied", "plain"])
def test_the_evaluation_harness_runs(models, kind, tmp_path):
    pytest.importorskip("lm_eval")
    exported = models.exported(kind, *F2.get(kind, ["--objective", "mle"]))
    texts = tmp_path / "texts.jsonl"
    texts.write_text("".join(json.dumps({"text": f"the class of token {n}"}) + "\n" for n in range(5)))
    (tmp_path / "f2_local.yaml").write_text(TASK.replace("TEXTS", str(texts)))
    trust = ",trust_remote_code=True" if kind == "untied" else ""
    command = [sys.executable, "-m", "lm_eval", "--model", "hf", "--tasks", "f2_local", "--device", "cpu"]
    command += ["--model_args", f"pretrained={exported}{trust}", "--include_path", str(tmp_path)]
    environment = {**os.environ, "HF_HOME": str(tmp_path / "home")}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0 and "word_perplexity" in done.stdout, done.stderr[-2000:]
