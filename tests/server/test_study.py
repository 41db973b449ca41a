"""`kopt study` on the simulator, end to end: only the model's words are played."""

import json
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kopt.search.evaluation.evaluation_site import EvaluationSite
from kopt.search.knowledge.store import KnowledgeStore
from kopt.search.records.run_state import Event, EventKind
from kopt.search.runs.run import RunCallbacks
from kopt.search.study.plan import Cell, StudyPlan
from kopt.search.study.study_folder import Watch, drive_cell
from kopt.server import study_driving
from kopt.server.exits import ExitCode
from support.bench_results import H100
from support.command_line import Ending, Kopt
from support.fake_messages import FakeMessages
from support.knowledge_cases import ENTRY, sample
from support.played.metered import Metered
from support.played.obedient import obedient_model
from support.small_silu import KERNEL, write_small_silu
from support.study_cases import plan

Play = Callable[..., tuple[Ending, FakeMessages]]
SETTINGS = """\
strategy: maic_rl
maic_rl: {trajectories: 2, steps: 1, most_steps: 1, at_once: 1, update_every: 2}
combine_top_k: 0
"""


@pytest.fixture
def home(
    kopt: Kopt,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    shared_home: Path,
    small_silu: Path,
) -> Path:
    """Return a KOPT_HOME of its own, with the caches of all tests and a small kernel."""
    del kopt  # sets its own home first
    own = tmp_path / "home"
    own.mkdir(mode=0o700)
    (own / "cache").symlink_to(shared_home / "cache")
    monkeypatch.setenv("KOPT_HOME", str(own))
    monkeypatch.setenv("KOPT_PROBLEMS", str(small_silu))
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    monkeypatch.delenv("ANTHROPIC_AUTH_TOKEN", raising=False)
    return own


@pytest.fixture
def play(kopt: Kopt, home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Play]:
    """Return a function that runs `kopt study` with a played model."""
    settings = tmp_path / "study.yaml"
    settings.write_text(SETTINGS)
    with ExitStack() as stack:

        def run(*words: str) -> tuple[Ending, FakeMessages]:
            fake = stack.enter_context(FakeMessages(Metered(obedient_model)))
            monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-not-a-key-of-anybody")
            monkeypatch.setenv("ANTHROPIC_BASE_URL", fake.url)
            asked = ("--kernel", KERNEL, "--config", settings, "--device", "sim")
            new = () if "--resume" in words else asked
            return kopt("study", "--yes", *new, *words), fake

        yield run


def _samples(home: Path, study: str, arm: str) -> int:
    folder = home / "studies" / study / "bases" / f"{arm}-r0"
    if not folder.exists():
        return 0
    with KnowledgeStore(folder) as store:
        return len(store.samples())


@pytest.mark.slow
@pytest.mark.parametrize(
    "others",
    [["memory_off"], pytest.param(["memory_off", "minimal"], marks=pytest.mark.nightly)],
)
def test_arms_are_run_on_the_kernel_each_with_a_memory_of_its_own(
    play: Play, home: Path, others: list[str]
) -> None:
    arms = [word for arm in ("full", *others) for word in ("--arm", arm)]
    ending, fake = play("--json", "--target", "1.2x", *arms)
    report = ending.document
    assert (ending.code, report["schema"], report["status"]) == (0, "kopt.study/1", "done")
    assert [arm["arm"] for arm in report["arms"]] == ["full", *others]
    assert {one["status"] for one in report["runs"]} == {"done"}
    tokens = sum(arm["tokens"] for arm in report["arms"])
    assert fake.requests and tokens > 0 and report["provenance"] == "estimated"
    assert all(arm["speed"]["interval"] is None for arm in report["arms"])  # of a single run
    study = report["study"]
    assert _samples(home, study, "full") > 0
    assert {_samples(home, study, arm) for arm in others} == {0}
    assert not (home / "knowledge").exists()  # nor has the user's own base learned of it
    folder = Path(report["folder"])
    assert (folder / "study.md").read_text("utf-8").startswith(f"# {study}")
    assert "Content-Security-Policy" in (folder / "study.html").read_text("utf-8")
    everything = b"".join(file.read_bytes() for file in folder.rglob("*") if file.is_file())
    assert b"sk-ant-not-a-key" not in everything


@pytest.mark.slow
def test_study_interrupted_within_a_run_goes_on_there_and_pays_nothing_twice(
    play: Play, kopt: Kopt, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(study_driving, "drive_cell", _stopped_in_the_second)
    ending, before = play("--arm", "full", "--arm", "memory_off")
    assert ending.code == ExitCode.INTERRUPTED
    (folder,) = (home / "studies").iterdir()
    assert f"Next: kopt study --resume {folder.name} " in ending.stderr
    assert "profiling #" in ending.stderr  # what a run says beside its events
    assert "1 of 2 runs have ended" in (folder / "study.md").read_text("utf-8")
    monkeypatch.setattr(study_driving, "drive_cell", drive_cell)
    ending, after = play("--resume", folder.name, "--json")
    assert ending.document["status"] == "done"
    runs = [kopt("runs", "show", name, "--json").document for name in _runs(ending)]
    calls = sum(run["spend"]["calls"] for run in runs)
    assert before.requests and calls == len(before.requests) + len(after.requests)
    again, idle = play("--resume", folder.name, "--json")
    assert again.document == ending.document and not idle.requests
    shown = play("--resume", folder.name)[0].stdout
    assert "Won, lost, open" in shown and f"{folder.name}, done" in shown
    assert str(folder / "study.html") in shown


def _stopped_in_the_second(plan: StudyPlan, cell: Cell, site: EvaluationSite, watch: Watch) -> None:
    """Drive a run; that of memory_off as a user does who presses Ctrl-C at its first candidate."""

    @contextmanager
    def stopping(past: Sequence[Event]) -> Generator[RunCallbacks]:
        with watch(past) as callbacks:

            def see(event: Event) -> None:
                callbacks.on_event(event)
                if cell.arm == "memory_off" and event.kind is EventKind.CANDIDATE_ADDED:
                    raise KeyboardInterrupt

            yield replace(callbacks, on_event=see)

    drive_cell(plan, cell, site, stopping)


def _runs(ending: Ending) -> list[str]:
    return [one["cell"]["run"] for one in ending.document["runs"]]


@pytest.mark.slow  # a whole study
@pytest.mark.parametrize(
    ("words", "arm"),
    [("other={}", "other"), pytest.param("{}", "full", marks=pytest.mark.nightly)],
)
def test_base_that_is_given_is_where_every_arm_with_memory_begins(
    play: Play, tmp_path: Path, words: str, arm: str
) -> None:
    base = tmp_path / "learned.yaml"
    with KnowledgeStore(tmp_path / "elsewhere") as store:
        store.learn([sample()])
        base.write_text(store.export(), "utf-8")
        origin = store.base().origin
    given = ("--arm", "full", "--base", words.format(base))
    report = play(*given, "--target", "95%", "--json")[0].document
    assert {one["target"]["ending"] for one in _outcomes(report)} == {"reached"}
    with KnowledgeStore(Path(report["folder"]) / "bases" / f"{arm}-r0") as store:
        base_of_arm = store.base()
        assert origin in base_of_arm.entries[ENTRY].evidence["sm_90a"]
        assert base_of_arm.origin != origin and store.samples()
    with KnowledgeStore(Path(report["folder"]) / "bases" / "full-r0") as store:
        evidence = store.base().entries[ENTRY].evidence.get("sm_90a", ())
        assert (origin in evidence) == (arm == "full")


def _outcomes(report: dict[str, Any]) -> list[dict[str, Any]]:
    return [one["outcome"] for one in report["runs"]]


def test_dry_run_says_what_it_would_cost_and_begins_nothing(play: Play, home: Path) -> None:
    ending, fake = play("--dry-run", "--repeats", "3", "--budget", "$1", "--json")
    forecast = ending.document
    assert (ending.code, forecast["schema"]) == (0, "kopt.study-forecast/1")
    assert forecast["runs"] == 4 * 3 and 0 < forecast["expected_usd"] <= forecast["most_usd"] <= 12
    assert not fake.requests and not (home / "studies").exists()
    assert "at most" in play("--dry-run")[0].stdout


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--kernel", KERNEL), f"the kernel {KERNEL} is named twice"),
        (("--kernel", "none_b1"), "no kernel is called 'none_b1'"),
        (("--arm", "nothing"), "arm 'nothing' is unknown"),
        (("--target", "fast"), "'fast' is no speed such as 1.3x"),
        (("--target", "0x"), "'0x' is no speed such as 1.3x"),
        (("--budget", "much"), "budget 'much'"),
        (("--target", "120%"), "no share such as 95%"),
        (("--target", "95"), "'95' may be 95x or 95%: write which"),
        (("--target", "0.95"), "'0.95' may be 0.95x or 0.95%: write which"),
        (("--target", ""), "'' is no speed such as 1.3x"),
        (("--base", "missing.yaml"), "cannot read missing.yaml"),
        (("--base", "other=missing.yaml"), "cannot read missing.yaml"),
        (("--arm", "memory_off", "--base", f"memory_off={__file__}"), "has no memory"),
        (("--base", __file__, "--base", __file__), "--base names all arms twice"),
        (("--base", "other=a=missing.yaml"), "cannot read a=missing.yaml"),
        (("--target", "100.4%"), "no share such as 95%"),
        (("--no-models", "--base", f"cycles_only={__file__}"), "cycles_only is one of agents"),
        (("--base", __file__), "test_study.py"),
        (("--base", __file__, "--dry-run"), "test_study.py"),
        (("--resume", "study-1"), "no study matches 'study-1'"),
        (("--resume", "study-1", "--repeats", "2"), "--repeats cannot be changed by --resume"),
    ],
)
def test_study_that_cannot_be_made_is_refused_before_anything_is_begun(
    play: Play, home: Path, words: tuple[str, ...], told: str
) -> None:
    ending, fake = play(*words)
    assert (ending.code, told in ending.stderr) == (ExitCode.USAGE, True), ending.stderr
    assert not fake.requests and not list(home.glob("runs/*")) + list(home.glob("studies/*"))


def test_study_without_a_key_is_refused_and_says_where_one_can_be_seen(
    kopt: Kopt, home: Path
) -> None:
    ending = kopt("study", "--kernel", KERNEL, "--device", "sim", "--json")
    assert ending.code == ExitCode.MACHINE
    assert "no ANTHROPIC_API_KEY" in json.loads(ending.stdout)["message"]
    assert kopt("study", "--device", "sim").code == ExitCode.USAGE


@pytest.mark.slow
def test_memory_is_compared_without_a_key_on_kernels_that_kopt_writes(
    kopt: Kopt, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KOPT_PROBLEMS", str(write_small_silu(tmp_path / "known", is_known=True)))
    asked = ("--kernel", KERNEL, "--device", "sim", "--arch", "sm_90a", "--rounds", "1")
    ending = kopt("study", "--no-models", *asked, "--budget", "4", "--json")
    report = ending.document
    assert [(one["arm"], one["tokens"]) for one in report["arms"]] == [
        ("full", 0),
        ("memory_off", 0),
    ]
    assert {one["status"] for one in report["runs"]} == {"budget"}  # of four candidates
    shown = [kopt("runs", "show", name, "--json").document for name in _runs(ending)]
    written = [{one["proposer"] for one in run["population"]} for run in shown]
    assert written == [{"start", "generated"}] * 2
    assert _samples(home, report["study"], "full") > 0
    (folder,) = (home / "studies").iterdir()
    assert kopt("study", "--resume", folder.name, "--json").document == report


def test_a_study_without_models_has_no_arm_of_agents(kopt: Kopt, home: Path) -> None:
    asked = ("study", "--no-models", "--kernel", KERNEL, "--device", "sim")
    refused = kopt(*asked, "--arm", "minimal")
    assert refused.code == ExitCode.USAGE and "--no-models asks none" in refused.stderr
    shown = kopt(*asked, "--dry-run")
    assert shown.code == 0 and "No model is asked" in shown.stdout
    assert "There is no key" not in shown.stdout and "a token is" not in shown.stdout
    assert "$" not in shown.stdout
    assert not list(home.glob("studies/*"))


def _write_plan(home: Path, written: StudyPlan) -> None:
    folder = home / "studies" / written.id
    folder.mkdir(parents=True)
    (folder / "study.json").write_text(written.model_dump_json(by_alias=True), "utf-8")


def test_study_of_a_gpu_goes_on_nowhere_else(kopt: Kopt, home: Path) -> None:
    _write_plan(home, plan(KERNEL, device="cuda:0", gpu=H100, arch="sm_90a"))
    other = kopt("study", "--resume", "study-", "--device", "sim")
    assert other.code == ExitCode.USAGE and f"was begun on {H100.name}" in other.stderr
    _write_plan(home, plan(KERNEL, id="study-2", device="sim"))
    kopt("study", "--resume", "study-2", "--device", "cuda:99")
    assert not list(home.glob("runs/*"))


def test_plan_of_another_kopt_is_refused_with_its_place(kopt: Kopt, home: Path) -> None:
    _write_plan(home, plan(KERNEL))
    (file,) = home.glob("studies/*/study.json")
    file.write_text(file.read_text("utf-8").replace("study-plan/1", "study-plan/9"), "utf-8")
    ending = kopt("study", "--resume", "study-")
    assert ending.code == ExitCode.MACHINE and str(file) in ending.stderr
