"""`kopt kb`: what was learned, shown, compared, exchanged, revoked from the command line."""

from pathlib import Path

import pytest

from kopt.kernels.status import Status
from kopt.search.knowledge.edits import AddNote
from kopt.search.knowledge.records import Sample
from kopt.search.knowledge.store import KnowledgeStore
from kopt.search.knowledge.yaml_writer import render_complete
from kopt.server.exits import ExitCode
from kopt.server.views.knowledge_view import ratio
from support.command_line import Kopt
from support.knowledge_cases import (
    ENTRY,
    ON_SIM,
    RUN,
    SEED,
    STATE,
    TECHNIQUE,
    edit,
    projected,
    sample,
)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kopt: Kopt) -> Path:
    """Return a state folder of the command line's own."""
    del kopt  # which sets one for all
    monkeypatch.setenv("KOPT_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def _learn(home: Path, *samples: Sample) -> None:
    with KnowledgeStore(home / "knowledge") as store:
        store.learn(samples)


def test_a_fresh_base_shows_priors_as_such(kopt: Kopt, home: Path) -> None:
    ending = kopt("kb", "show")
    assert ending.code == 0
    assert "No evidence yet: priors only." in ending.stdout
    assert str(home / "knowledge" / "base.yaml") in ending.stdout


def test_the_overview_counts_what_was_tried(kopt: Kopt, home: Path) -> None:
    _learn(home, sample(1), sample(2, **ON_SIM))
    ending = kopt("kb", "show")
    assert "Evidence measured on sm_90a, estimated for sm_90a." in ending.stdout
    line = " ".join(ending.stdout.splitlines()[4].split())
    assert line.startswith(f"{STATE} memory_bound 1 of 4 2 of 2 {TECHNIQUE} ")


def test_a_state_shows_its_evidence_and_where_it_is_from(kopt: Kopt, home: Path) -> None:
    _learn(home, sample(1), sample(2, outcome="failed", measured=None))
    shown = kopt("kb", "show", STATE).stdout
    assert "measured on sm_90a: 2 tries: 1 gained, 1 failed; 1.11x where it had an effect" in shown
    assert f"on add_rmsnorm_fp4quant_b128xh2048; last {RUN}/1, {RUN}/2" in shown
    prior = SEED.entries[ENTRY].prior
    assert prior is not None and f"prior {ratio(prior.gain)}" in shown


def test_an_earlier_version_is_shown_as_it_was(kopt: Kopt, home: Path) -> None:
    _learn(home, sample(1))
    assert "No evidence yet" in kopt("kb", "show", "--version", 0).stdout
    refused = kopt("kb", "show", "--version", 7)
    assert (refused.code, "versions 0 to 1" in refused.stderr) == (ExitCode.USAGE, True)


def test_an_unknown_state_is_one_line(kopt: Kopt, home: Path) -> None:
    for words in (("show",), ("show", "--calibration"), ("samples", "--state")):
        ending = kopt("kb", *words, "dram_saturate")
        assert (ending.code, ending.stderr.count("\n")) == (ExitCode.USAGE, 1)
        assert "did you mean dram_saturated" in ending.stderr


def test_a_technique_in_place_of_a_state_is_explained(kopt: Kopt, home: Path) -> None:
    refused = kopt("kb", "show", TECHNIQUE)
    assert f"{TECHNIQUE} is a technique and no state: Keep the row" in refused.stderr
    assert "dram_saturated" in refused.stderr


def test_a_state_says_what_its_techniques_are(kopt: Kopt, home: Path) -> None:
    shown = kopt("kb", "show", STATE).stdout
    assert f"{TECHNIQUE} (register_caching): Keep the row in registers" in shown


@pytest.mark.parametrize("arch", ["sm90", "foo", "foo estimated"])
def test_expectations_are_for_an_architecture_that_exists(
    kopt: Kopt, home: Path, arch: str
) -> None:
    refused = kopt("kb", "show", "--arch", arch)
    assert (refused.code, "is neither an architecture" in refused.stderr) == (ExitCode.USAGE, True)
    assert "estimated for sm_90a" in kopt("kb", "show", "--arch", "sm_90a estimated").stdout


def test_samples_show_predicted_beside_measured(kopt: Kopt, home: Path) -> None:
    _learn(home, sample(1, predicted=0.05, predicted_interval=(-0.1, 0.2)), sample(2, run="run-2"))
    shown = kopt("kb", "samples", "--run", RUN).stdout
    assert "1.05x (0.90x to 1.22x)" in shown
    assert "1.11x (1.08x to 1.13x)" in shown
    assert f"{RUN}/1  gained  add_rmsnorm_fp4quant_b128xh2048\n" in shown
    assert f"{TECHNIQUE} in {STATE}\n" in shown
    assert "came 1.11x (1.08x to 1.13x), measured on sm_90a" in shown
    assert "run-2/2" not in shown


def test_a_run_that_nobody_knows_is_wrong_usage(kopt: Kopt, home: Path) -> None:
    _learn(home, sample(1))
    refused = kopt("kb", "samples", "--run", "run-misspelt")
    assert refused.code == ExitCode.USAGE
    assert f"no run matches 'run-misspelt'; newest first: {RUN}" in refused.stderr


def test_an_unmistakable_part_names_a_run(kopt: Kopt, home: Path) -> None:
    _learn(home, sample(1), sample(2, run="run-other"))
    shown = kopt("kb", "samples", "--run", "other").stdout
    assert "run-other/2" in shown
    assert f"{RUN}/1" not in shown


@pytest.mark.parametrize(
    ("status", "told"),
    [(Status.INCORRECT, "came incorrect (sm_90a)"), (Status.PASSED, "passed, not credited")],
)
def test_a_sample_without_a_gain_says_what_it_ended_as(
    kopt: Kopt, home: Path, status: Status, told: str
) -> None:
    _learn(home, sample(1, outcome="failed", measured=None, interval=None, status=status))
    assert told in kopt("kb", "samples").stdout


def test_calibration_says_how_far_predictions_were_off(kopt: Kopt, home: Path) -> None:
    assert "nothing was predicted yet" in kopt("kb", "show", "--calibration").stdout
    _learn(home, sample(1, predicted=0.1, predicted_interval=(0.0, 0.2)))
    shown = kopt("kb", "show", "--calibration").stdout
    assert "measured on sm_90a" in shown and "100 % of 1" in shown


@pytest.mark.parametrize("more", [("--version", "0"), ("--arch", "sm_90a")])
def test_calibration_is_of_all_there_is_and_says_so(
    kopt: Kopt, home: Path, more: tuple[str, ...]
) -> None:
    refused = kopt("kb", "show", "--calibration", *more)
    assert (refused.code, "leave --arch and --version out" in refused.stderr) == (
        ExitCode.USAGE,
        True,
    )


def test_what_changed_since_a_version_is_told(kopt: Kopt, home: Path) -> None:
    _learn(home, sample(1))
    _learn(home, sample(2))
    shown = kopt("kb", "diff", "--since", 1).stdout
    assert shown.startswith(f"~ entry {STATE}: {TECHNIQUE}\n")
    assert "1 try: 1 gained; 1.11x where it had an effect -> 2 tries: 2 gained" in shown
    assert kopt("kb", "diff", 2).stdout == "no difference\n"


@pytest.mark.parametrize("words", [(), ("1", "--since", "1")])
def test_a_comparison_with_nothing_or_with_two_things_is_wrong_usage(
    kopt: Kopt, home: Path, words: tuple[str, ...]
) -> None:
    assert kopt("kb", "diff", *words).code == ExitCode.USAGE


def test_a_base_does_not_differ_from_its_own_export(kopt: Kopt, home: Path, tmp_path: Path) -> None:
    _learn(home, sample(1, measured=1 / 3, interval=(0.3, 0.36)), sample(2, measured=1 / 7))
    kopt("kb", "export", "--to", tmp_path / "mine.yaml")
    assert kopt("kb", "diff", tmp_path / "mine.yaml").stdout == "no difference\n"


def test_forgotten_evidence_is_told_without_an_owner(kopt: Kopt, home: Path) -> None:
    _learn(home, sample(1))
    kopt("kb", "forget", RUN)
    assert "1.11x where it had an effect -> no tries\n" in kopt("kb", "diff", "--since", 1).stdout


def test_a_base_travels_from_one_home_to_another(
    kopt: Kopt, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _learn(home, sample(1))
    mine = tmp_path / "mine.yaml"
    assert kopt("kb", "export", "--to", mine).code == 0
    monkeypatch.setenv("KOPT_HOME", str(tmp_path / "other"))
    first, again = kopt("kb", "import", mine).stdout, kopt("kb", "import", mine).stdout
    assert first.startswith("imported: k") and again.startswith("nothing new")
    assert " with 1 try; the base is at version 1" in first
    assert "1 gained" in kopt("kb", "show", STATE).stdout
    origin = first.split()[1]
    assert kopt("kb", "forget", origin).stdout == f"forgotten: {origin}\n"
    assert "No evidence yet" in kopt("kb", "show").stdout


@pytest.mark.slow  # several bases are written and read
def test_merged_files_are_the_same_in_either_order(
    kopt: Kopt, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [tmp_path / name for name in ("a.yaml", "b.yaml")]
    for number, path in enumerate(paths):
        monkeypatch.setenv("KOPT_HOME", str(tmp_path / str(number)))
        _learn(tmp_path / str(number), sample(number))
        kopt("kb", "export", "-o", path)
    one, other = kopt("kb", "merge", *paths).stdout, kopt("kb", "merge", *reversed(paths)).stdout
    assert one == other
    merged = tmp_path / "merged.yaml"
    assert kopt("kb", "merge", *paths, "-o", merged).code == 0
    assert merged.read_text("utf-8") == one
    assert "2 tries: 2 gained" in kopt("kb", "diff", paths[0], merged).stdout


def test_evidence_of_another_base_is_told_with_who_it_is_of(
    kopt: Kopt, home: Path, tmp_path: Path
) -> None:
    theirs = tmp_path / "theirs.yaml"
    theirs.write_text(render_complete(projected([(1, sample(2))], "k2")), "utf-8")
    _learn(home, sample(1))
    assert "1.11x where it had an effect (by k2) -> 1 try" in kopt("kb", "diff", theirs).stdout


def test_a_run_is_forgotten_once(kopt: Kopt, home: Path) -> None:
    _learn(home, sample(1), sample(2))
    assert kopt("kb", "forget", RUN).stdout == f"forgotten: {RUN}/1, {RUN}/2\n"
    assert kopt("kb", "forget", RUN).stdout == f"{RUN} was forgotten before\n"
    refused = kopt("kb", "forget", "run-9")
    assert (refused.code, refused.stdout) == (ExitCode.USAGE, "")


def test_path_is_the_file_for_people(kopt: Kopt, home: Path) -> None:
    path = Path(kopt("kb", "path").stdout.strip())
    assert path == home / "knowledge" / "base.yaml"
    assert path.read_text("utf-8").startswith("# What kopt has learned.")


@pytest.mark.parametrize(
    ("words", "schema"),
    [
        (("show",), "kopt.knowledge-report/1"),
        (("show", STATE), "kopt.knowledge-state/1"),
        (("show", "--calibration"), "kopt.knowledge-calibration/1"),
        (("samples",), "kopt.samples/1"),
        (("diff", "--since", "0"), "kopt.knowledge-diff/1"),
        (("export",), "kopt.knowledge-document/1"),
        (("forget", RUN), "kopt.knowledge-forget/1"),
        (("path",), "kopt.knowledge-path/1"),
    ],
)
def test_json_is_one_document_of_the_stated_schema(
    kopt: Kopt, home: Path, words: tuple[str, ...], schema: str
) -> None:
    _learn(home, sample(1))
    document = kopt("kb", *words, "--json").document
    assert (document["schema"], document["status"]) == (schema, "passed")


def test_a_file_that_is_no_base_is_refused_and_nothing_is_taken(
    kopt: Kopt, home: Path, tmp_path: Path
) -> None:
    wrong = tmp_path / "wrong.yaml"
    for data in (b"hello: 1\n", b"\xff\xfe", b"#" * (5 << 20)):
        wrong.write_bytes(data)
        assert kopt("kb", "import", wrong).code == ExitCode.USAGE
    assert kopt("kb", "import", tmp_path / "missing.yaml").code == ExitCode.USAGE
    assert kopt("kb", "diff", "--since", 0).stdout == "no difference\n"


def test_a_damaged_ledger_is_a_machine_fault_with_what_to_do(kopt: Kopt, home: Path) -> None:
    _learn(home, sample(1))
    (home / "knowledge" / "samples.sqlite").write_bytes(b"rubbish" * 999)
    ending = kopt("kb", "show")
    assert ending.code == ExitCode.MACHINE
    assert f"kopt kb import {home / 'knowledge' / 'old.yaml'}" in ending.stderr.splitlines()[0]


def test_no_control_character_of_a_note_reaches_a_terminal(kopt: Kopt, home: Path) -> None:
    with KnowledgeStore(home / "knowledge") as store:
        store.edit([edit(AddNote, text="\x1b[31mred \u202eleft")])
    shown = kopt("kb", "show", STATE).stdout + kopt("kb", "diff", "0").stdout
    assert "red" in shown
    assert "\x1b" not in shown and "\u202e" not in shown
