"""`kopt check` of a candidate whose variants set tune values: those that ran are named."""

import pytest

from kopt.kernels.check_result import CheckResult
from kopt.tools.facts.check_facts import check_facts
from kopt.tools.selftest.sample import SAMPLES
from support.command_line import Kopt

pytestmark = pytest.mark.slow  # every workload is compiled

SAMPLE = SAMPLES / "good_variants_by_shape.cu"


def test_the_values_that_a_variant_sets_are_named_not_the_defaults(kopt: Kopt) -> None:
    words = ("check", SAMPLE, "--kernel", "merge_state_n128xh64xd128", "--device", "sim")
    assert kopt(*words).stdout.splitlines()[1].endswith(", WARPS=8")
    result = CheckResult.model_validate_json(kopt(*words, "--json").stdout)
    assert result.tune == {"WARPS": 2}
    assert check_facts(result, "concise")["tune"] == "WARPS=8"


def test_each_workload_has_its_values_where_they_differ(kopt: Kopt) -> None:
    words = ("--kernel", "merge_state_n8xh64xd128", "--device", "sim", "--level", "full")
    lines = kopt("check", SAMPLE, *words).stdout.splitlines()
    assert lines[2].endswith("tune values")
    assert [(line.split()[0], line.split()[-1]) for line in lines[3:5]] == [
        ("n8xh64xd128", "WARPS=2"),
        ("n128xh64xd128", "WARPS=8"),
    ]
