"""`kopt selftest`: what it counts, how it ends, and what a careless user is told."""

import json

import pytest

from kopt.kernels.status import Status
from kopt.server.exits import ExitCode
from kopt.tools.selftest.result import SampleOutcome, SampleResult, SelftestResult, outcome_of
from support.command_line import Kopt


def _sample(expected: Status, status: Status) -> SampleResult:
    return SampleResult(
        name="one",
        kernel="scale_rows_b8xh64",
        level="quick",
        expected=expected,
        status=status,
        outcome=outcome_of(expected, status),
        said="out[0] is 1, expected 2",
        elapsed_s=0.1,
    )


@pytest.mark.parametrize(
    ("expected", "status", "outcome", "holds"),
    [
        (Status.DATA_RACE, Status.DATA_RACE, SampleOutcome.AS_EXPECTED, True),
        (Status.DATA_RACE, Status.INCORRECT, SampleOutcome.CAUGHT_OTHERWISE, True),
        (Status.DATA_RACE, Status.PASSED, SampleOutcome.MISSED, False),
        (Status.PASSED, Status.PASSED, SampleOutcome.AS_EXPECTED, True),
        (Status.PASSED, Status.TIMEOUT, SampleOutcome.REFUSED, False),
    ],
)
def test_a_miss_or_a_false_refusal_breaks_the_promise(
    expected: Status, status: Status, outcome: SampleOutcome, holds: bool
) -> None:
    begun = SelftestResult(device="sim", arch="sm_90a", planned=2)
    first, passing = _sample(expected, status), _sample(Status.PASSED, Status.PASSED)
    result = begun.with_samples([first])
    assert (result.samples[0].outcome, result.holds) == (outcome, holds)
    assert result.with_samples([first, passing]).holds is holds  # what comes after mends no miss


@pytest.mark.slow  # compiles and runs samples
def test_chosen_samples_are_counted_by_the_kind_of_their_flaw(kopt: Kopt) -> None:
    result = kopt("selftest", "--device", "sim", "evil_missing_barrier", "good_scal*")
    assert result.code == ExitCode.PASSED, result.stderr
    assert "race or barrier" in result.stdout
    assert "0 of 1 refused" in result.stdout
    assert "2 samples on sim" in result.stdout


def test_the_document_has_every_sample_with_what_was_said(kopt: Kopt) -> None:
    result = kopt("selftest", "--device", "sim", "evil_syntax_error", "--json")
    document = json.loads(result.stdout)
    assert (document["schema"], document["holds"], document["planned"]) == (
        "kopt.selftest/1",
        True,
        1,
    )
    [sample] = document["samples"]
    assert sample["outcome"] == "as_expected"
    assert sample["said"].startswith("line ")


def test_an_unknown_sample_has_its_near_matches(kopt: Kopt) -> None:
    result = kopt("selftest", "evil_mising_barrier")
    assert result.code == ExitCode.USAGE
    assert "did you mean evil_missing_barrier" in result.stderr


def test_a_pattern_that_fits_no_sample_does_not_list_them_all(kopt: Kopt) -> None:
    result = kopt("selftest", "nothing*")
    assert result.code == ExitCode.USAGE
    assert result.stderr.rstrip().endswith(" more")
    assert len(result.stderr) < 2_000
