"""`F2Softmax` compared with the reference implementation and autograd, and its use with other parts of torch."""

import copy
import io
import json
import os
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from f2_softmax.torch import F2Softmax  # noqa: E402

REPOSITORY = Path(__file__).parents[2]
ORACLE = REPOSITORY / "crates/f2-engine/tests/fixtures/f2_head.json"


DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]


@pytest.fixture(autouse=True, params=DEVICES)
def device(request):
    """Runs every test on every available device."""
    torch.set_default_device(request.param)
    yield request.param
    torch.set_default_device("cpu")


def generator(seed):
    return torch.Generator(torch.get_default_device()).manual_seed(seed)


def cases():
    return json.loads(ORACLE.read_text())["cases"]


def layer(case, dtype=torch.float64, **options):
    head = F2Softmax(case["d"], case["ends"], dtype=dtype, **options)
    with torch.no_grad():
        head.class_weight.copy_(torch.tensor(case["U"], dtype=dtype))
        head.weight.copy_(torch.tensor(case["O"], dtype=dtype))
    return head


def targets(case):
    """The oracle's padding, as -100."""
    pad = case["pad"]
    return torch.tensor([-100 if target == pad else target for target in case["targets"]])


@pytest.mark.parametrize("case", cases(), ids=lambda case: case["name"])
@pytest.mark.parametrize("dtype, tolerance", [(torch.float64, 1e-12), (torch.float32, 1e-6)])
@pytest.mark.parametrize("grouped", [False, True])
def test_equals_the_oracle_with_gradients(case, dtype, tolerance, grouped):
    head = layer(case, dtype)
    if grouped:
        # The groups used on a GPU.
        head._groups.reverse()
        head._fill_tables()
    hidden = torch.tensor(case["H"], dtype=dtype, requires_grad=True)
    output, loss = head(hidden, targets(case))
    loss.backward()

    def close(found, expected):
        expected = torch.tensor(expected, dtype=torch.float64)
        scale = expected.abs().max().clamp(min=1)
        assert (found.detach().double() - expected).abs().max() <= tolerance * scale

    kept = targets(case) != -100
    close(-output[kept], [nll for nll, keep in zip(case["nll"], kept) if keep])
    close(loss, case["loss"])
    close(head.log_prob(hidden), case["log_posterior"])
    close(hidden.grad, case["dH"])
    close(head.class_weight.grad, case["dU"])
    close(head.weight.grad, case["dO"])


@pytest.mark.parametrize("bias", [False, True])
def test_gradcheck(bias):
    torch.manual_seed(0)
    head = F2Softmax(5, [2, 3, 9], bias=bias, dtype=torch.float64)
    hidden = torch.randn(7, 5, dtype=torch.float64, requires_grad=True)
    target = torch.tensor([0, 1, 2, 5, 8, -100, 3])
    names = [name for name, _ in head.named_parameters()]

    def output(hidden, *parameters):
        return torch.func.functional_call(head, dict(zip(names, parameters)), (hidden, target)).output

    parameters = [parameter.detach().clone().requires_grad_() for parameter in head.parameters()]
    assert torch.autograd.gradcheck(output, (hidden, *parameters))


def test_the_posterior_sums_to_one_and_forward_agrees_with_it():
    torch.manual_seed(0)
    head = F2Softmax(6, [1, 4, 30], bias=True)
    torch.nn.init.normal_(head.bias)
    torch.nn.init.normal_(head.class_bias)
    hidden, target = torch.randn(2, 5, 6), torch.randint(30, (2, 5))
    posterior = head.log_prob(hidden)
    assert torch.allclose(posterior.exp().sum(-1), torch.ones(2, 5))
    output, loss = head(hidden, target)
    assert torch.allclose(output, posterior.gather(-1, target[..., None])[..., 0], atol=1e-6)
    assert torch.allclose(loss, -output.mean())
    assert head.predict(hidden).equal(posterior.argmax(-1))


def test_reductions_weights_and_ignored_targets_are_those_of_cross_entropy():
    torch.manual_seed(0)
    head = F2Softmax(6, [2, 10])
    hidden, target = torch.randn(9, 6), torch.tensor([0, 1, 2, 9, -1, 3, -1, 4, 5])
    weight = torch.rand(10)
    for reduction in ("mean", "sum", "none"):
        for weights in (None, weight):
            found = head(hidden, target, reduction, ignore_index=-1, weight=weights).loss
            # Log-probabilities used as logits: their softmax is the posterior.
            expected = torch.nn.functional.cross_entropy(
                head.log_prob(hidden), target, weights, ignore_index=-1, reduction=reduction
            )
            assert torch.allclose(found, expected, atol=1e-6)
    assert head(hidden[:0], target[:0], "sum").loss == 0


def test_a_single_class_is_the_plain_softmax():
    torch.manual_seed(0)
    head = F2Softmax(6, [12])
    hidden, target = torch.randn(8, 6), torch.randint(12, (8,))
    expected = torch.nn.functional.cross_entropy(hidden @ head.weight.T, target)
    assert torch.allclose(head(hidden, target).loss, expected)


def test_a_tied_weight_is_shared_and_learns_from_both_sides():
    embedding = torch.nn.Embedding(12, 6)
    head = F2Softmax(6, [3, 12], tie_weight=embedding.weight)
    assert head.weight is embedding.weight
    head(embedding(torch.tensor([1, 5])), torch.tensor([2, 7])).loss.backward()
    assert embedding.weight.grad.abs().sum(1).nonzero().numel() > 2


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_under_autocast(dtype, device):
    torch.manual_seed(0)
    head = F2Softmax(16, [2, 8, 40])
    hidden, target = torch.randn(32, 16, requires_grad=True), torch.randint(40, (32,))
    expected = head(hidden, target).loss
    with torch.autocast(device, dtype):
        loss = head(hidden, target).loss
        assert head.log_prob(hidden).dtype == torch.float32
    loss.backward()
    assert loss.dtype == torch.float32 and head.weight.grad.dtype == torch.float32
    assert torch.allclose(loss, expected, atol=1e-2)


@pytest.mark.skipif(os.environ.get("F2_TEST_COMPILE") == "0", reason="F2_TEST_COMPILE=0")
def test_compiles_as_one_graph():
    torch.manual_seed(0)
    head = F2Softmax(16, [2, 8, 40])
    hidden, target = torch.randn(32, 16, requires_grad=True), torch.randint(40, (32,))
    target[3] = -100
    # Only the graph is captured: code generation needs a C compiler and takes minutes.
    compiled = torch.compile(head, fullgraph=True, backend="aot_eager")
    expected = head(hidden, target).loss
    expected.backward()
    gradients = [hidden.grad, head.weight.grad, head.class_weight.grad]
    hidden.grad = None
    head.zero_grad()
    loss = compiled(hidden, target).loss
    loss.backward()
    assert torch.allclose(loss, expected)
    for found, wanted in zip([hidden.grad, head.weight.grad, head.class_weight.grad], gradients):
        assert torch.allclose(found, wanted, atol=1e-6)


def test_data_parallel(tmp_path):
    distributed = pytest.importorskip("torch.distributed")
    if not distributed.is_available() or not distributed.is_gloo_available():
        pytest.skip("torch without gloo")
    distributed.init_process_group("gloo", init_method=f"file://{tmp_path}/rendezvous", rank=0, world_size=1)
    try:
        head = torch.nn.parallel.DistributedDataParallel(F2Softmax(6, [2, 12]))
        # No target in the second class: its vectors still need a gradient.
        head(torch.randn(4, 6), torch.tensor([0, 1, 0, 1])).loss.backward()
        assert all(parameter.grad is not None for parameter in head.parameters())
    finally:
        distributed.destroy_process_group()


def test_states_copies_and_meta_devices(device):
    head = F2Softmax(6, [2, 12])
    assert list(head.state_dict()) == ["weight", "class_weight"]
    file = io.BytesIO()
    torch.save(head.state_dict(), file)
    file.seek(0)
    other = F2Softmax(6, [2, 12], device="meta").to_empty(device=device)
    other.reset_parameters()
    other.load_state_dict(torch.load(file))
    hidden, target = torch.randn(5, 6), torch.randint(12, (5,))
    assert other(hidden, target).loss == head(hidden, target).loss == copy.deepcopy(head)(hidden, target).loss


def test_samples_come_from_the_distribution():
    torch.manual_seed(0)
    head = F2Softmax(6, [2, 5, 12])
    torch.nn.init.normal_(head.weight)
    torch.nn.init.normal_(head.class_weight)
    hidden = torch.randn(6)
    rows = hidden.expand(40_000, 6)
    source = generator(1)
    drawn = torch.bincount(head.sample(rows, generator=source), minlength=12) / len(rows)
    assert (drawn - head.log_prob(hidden).exp()).abs().max() < 0.01
    # Two tokens of each class, at most.
    few = head.sample(rows, k=2, generator=source)
    assert len(few.unique()) == 6
    again = [head.sample(rows[:50], generator=generator(7)) for _ in range(2)]
    assert again[0].equal(again[1])


def test_greedy_sampling_takes_the_best_class_and_its_best_token():
    torch.manual_seed(0)
    head = F2Softmax(6, [2, 5, 12])
    torch.nn.init.normal_(head.weight)
    torch.nn.init.normal_(head.class_weight)
    hidden = torch.randn(50, 6)
    classes = (hidden @ head.class_weight.T).argmax(-1)
    logits = hidden @ head.weight.T
    ranges = [(0, 2), (2, 5), (5, 12)]
    expected = [
        start + logits[row, start:end].argmax().item()
        for row, (start, end) in enumerate(ranges[c] for c in classes)
    ]
    assert head.predict(hidden, decoupled=True).tolist() == expected
    assert head.sample(hidden, class_top_p=1e-9, top_p=1e-9).tolist() == expected
    assert not head.predict(hidden).equal(head.predict(hidden, decoupled=True))


def test_larger_classes_keep_more_tokens_where_k_grows():
    torch.manual_seed(0)
    head = F2Softmax(6, [2, 5, 12, 62])
    torch.nn.init.normal_(head.weight)
    # All classes are equally likely, and the tokens of a class nearly so.
    torch.nn.init.zeros_(head.class_weight)
    hidden = torch.randn(1, 6) / 10
    logits = head.log_prob(hidden)[0]
    kept = set(head.sample(hidden.expand(20_000, 6), k=1, k_growth=0.7).tolist())
    expected = set()
    # (3 / 2) ** 0.7 = 1.3, (7 / 2) ** 0.7 = 2.4 and (50 / 2) ** 0.7 = 9.5.
    for start, end, k in [(0, 2, 1), (2, 5, 1), (5, 12, 2), (12, 62, 10)]:
        expected |= set((start + logits[start:end].topk(k).indices).tolist())
    assert kept == expected
    draws = [head.sample(hidden.expand(50, 6), k=3, generator=torch.Generator().manual_seed(1), k_growth=g) for g in (0.0, 0)]
    plain = head.sample(hidden.expand(50, 6), k=3, generator=torch.Generator().manual_seed(1))
    assert all(drawn.equal(plain) for drawn in draws)
    # More than the size of the class: all its tokens are kept.
    assert len(set(head.sample(hidden.expand(20_000, 6), k=2, k_growth=9.0).tolist())) == 62


def test_the_nucleus_of_classes_drops_the_one_that_crosses():
    from f2_softmax.torch.sampling import truncate

    logs = torch.tensor([[0.5, 0.3, 0.15, 0.05]], dtype=torch.float64).log()
    kept = {p: truncate(logs, 1.0, strict_p=p)[0].nonzero()[:, 0].tolist() for p in (0.4, 0.6, 0.8, 0.97)}
    assert kept == {0.4: [0], 0.6: [0], 0.8: [0, 1], 0.97: [0, 1, 2]}
    kept = {p: truncate(logs, 1.0, p=p)[0].nonzero()[:, 0].tolist() for p in (0.4, 0.6, 0.8, 0.97)}
    assert kept == {0.4: [0], 0.6: [0, 1], 0.8: [0, 1], 0.97: [0, 1, 2, 3]}


@pytest.mark.parametrize(
    "ends, error, says",
    [
        ([], ValueError, "at least one class"),
        ([0, 5], ValueError, "must rise from above 0"),
        ([5, 5], ValueError, "must rise"),
        ([5, 3], ValueError, "must rise"),
        ([1.5, 3], TypeError, "must be integers"),
        (["a"], TypeError, "must be integers"),
    ],
)
def test_bad_classes_are_refused(ends, error, says):
    with pytest.raises(error, match=says):
        F2Softmax(4, ends)


def test_bad_input_is_refused():
    head = F2Softmax(4, [2, 6])
    hidden, target = torch.randn(3, 4), torch.tensor([0, 1, 2])

    def refused(error, says, call):
        with pytest.raises(error, match=says):
            call()

    refused(ValueError, "target 6 is not a token id", lambda: head(hidden, torch.tensor([0, 6, 1])))
    refused(ValueError, "target -7 is not a token id", lambda: head(hidden, torch.tensor([0, -7, 1])))
    refused(TypeError, "must hold integers", lambda: head(hidden, target.float()))
    refused(ValueError, "target must have shape", lambda: head(hidden, target[:2]))
    refused(ValueError, r"hidden must have shape \[..., 4\]", lambda: head(hidden[:, :3], target))
    refused(TypeError, "floating-point", lambda: head(hidden.long(), target))
    refused(ValueError, "reduction must be", lambda: head(hidden, target, "median"))
    refused(ValueError, "weight must have shape", lambda: head(hidden, target, weight=torch.ones(3)))
    refused(ValueError, "tie_weight has shape", lambda: F2Softmax(4, [2, 6], torch.nn.Parameter(torch.ones(5, 4))))
    refused(ValueError, "k must be from 1 to 6", lambda: head.sample(hidden, k=0))
    refused(ValueError, "k_growth must be", lambda: head.sample(hidden, k=1, k_growth=-1))
    refused(ValueError, "k_growth needs k", lambda: head.sample(hidden, k_growth=0.5))
    refused(ValueError, "class_top_p must be", lambda: head.sample(hidden, class_top_p=0))
    refused(ValueError, "temperature must be", lambda: head.sample(hidden, temperature=float("nan")))
    refused(ValueError, "no finite numbers", lambda: head.sample(hidden * float("nan")))
    # As everywhere in torch, a NaN in the hidden states shows up in training.
    assert head(hidden * float("nan"), target).loss.isnan()


def test_from_counts_needs_ranks():
    pytest.importorskip("f2_softmax._native")
    head = F2Softmax.from_counts([10, 9, 5, 3, 2, 1], in_features=4, k=2, bias=True)
    assert head.n_classes == 2 and head.vocabulary == 6 and head.bias is not None
    with pytest.raises(ValueError, match="counts must fall"):
        F2Softmax.from_counts([1, 5], in_features=4)
