"""`kopt run --dry-run`: the plan of a run, shown without a key and without beginning anything."""

from pathlib import Path

import pytest

from kopt.server.exits import ExitCode
from support.command_line import Kopt

pytestmark = pytest.mark.slow  # plans of every kernel

KERNEL = "silu_and_mul_b8xh14336"


@pytest.fixture(autouse=True)
def _own_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, kopt: Kopt) -> None:
    monkeypatch.setenv("KOPT_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    monkeypatch.delenv("ANTHROPIC_AUTH_TOKEN", raising=False)


def test_plan_tells_rounds_roles_cost_budget_and_how_it_was_estimated(kopt: Kopt) -> None:
    ending = kopt("run", "--kernel", KERNEL, "--device", "sim", "--dry-run", "--budget", "$5")
    assert ending.code == ExitCode.PASSED
    for said in (
        "No model is asked (--no-models, or no ANTHROPIC_API_KEY and no other --provider)",
        "planner    claude-opus-5-5",
        "Expected: $",
        "At the very most, without a budget: $",
        "Budget: $5; with agents its dollars are ",
        "Estimated with: a token is 3 bytes",
    ):
        assert said in ending.stdout


def test_plan_begins_no_run(kopt: Kopt, tmp_path: Path) -> None:
    kopt("run", "--kernel", KERNEL, "--device", "sim", "--dry-run")
    assert not (tmp_path / "home" / "runs").exists()


def test_plan_follows_the_options_and_is_one_document(kopt: Kopt) -> None:
    words = ("--device", "sim", "--rounds", "2", "--beam-width", "1", "--dry-run", "--json")
    document = kopt("run", "--kernel", KERNEL, *words).document
    assert (document["schema"], document["kernel"]) == ("kopt.run-plan/1", KERNEL)
    assert [one["kind"] for one in document["rounds"]] == ["start", "generated", "generated"]
    assert document["asks_models"] is False


def test_of_all_kernels_each_has_a_plan_and_the_sum_is_told(kopt: Kopt) -> None:
    ending = kopt("run", "--all", "--device", "sim", "--dry-run")
    total, then = ending.stdout.rstrip().splitlines()[-2:]
    assert total.startswith("all ")
    assert then.startswith("Next: kopt run --all --device sim  #")
    document = kopt("run", "--all", "--device", "sim", "--dry-run", "--json").document
    assert document["schema"] == "kopt.run-plans/1"
    assert len({one["kernel"] for one in document["plans"]}) == len(document["plans"]) > 20


def test_price_that_is_not_known_is_told_with_where_to_write_it(kopt: Kopt, tmp_path: Path) -> None:
    config = tmp_path / "search.yaml"
    config.write_text("roles: {planner: {model: claude-unheard-of}}\n")
    ending = kopt("run", "--kernel", KERNEL, "--device", "sim", "--dry-run", "--config", config)
    assert ending.code == ExitCode.MACHINE
    assert "the price of claude-unheard-of is not known" in ending.stderr


def test_all_on_the_simulator_leaves_out_what_only_a_gpu_runs(kopt: Kopt) -> None:
    document = kopt("run", "--all", "--device", "sim", "--dry-run", "--json").document
    planned = {plan["kernel"] for plan in document["plans"]}
    assert "silu_and_mul_b8xh14336" in planned
    assert not any(kernel.startswith("gemm_bf16") for kernel in planned)


@pytest.mark.parametrize("words", [("--dry-run",), ("--no-models",)])
def test_a_kernel_that_only_a_gpu_runs_is_refused_before_a_run_begins(
    kopt: Kopt, words: tuple[str, ...]
) -> None:
    ending = kopt("run", "--kernel", "gemm_bf16_m1xn4096xk4096", "--device", "sim", *words)
    assert ending.code == ExitCode.USAGE
    assert "sim never runs it; check gemm_bf16_m64xn128xk128" in ending.stderr
    assert kopt("runs", "--json").document["runs"] == []
