"""Large outputs are taken in parts, and the parts together are what the whole would be."""

from dataclasses import replace

import numpy as np
import pytest

from kopt.kernels.problem_loader import find_kernel
from kopt.tools.check import output, reference
from kopt.tools.check.case_data import CaseData, CaseKey, make_case_data
from kopt.tools.check.output import Output

PARTS = (1000, 1 << 20)


def _case() -> CaseData:
    problem, workload = find_kernel("fused_add_rmsnorm_b8xh4096", None)
    return make_case_data(CaseKey(problem, workload, seed=1, regime="mixed"))


def test_sums_over_rows_do_not_depend_on_the_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    cases: list[CaseData] = []
    for elements in PARTS:
        monkeypatch.setattr(reference, "CHUNK_ELEMENTS", elements)
        cases.append(_case())
    small, whole = (case.references["input"] for case in cases)
    assert small.noise is not None
    assert whole.noise is not None
    np.testing.assert_array_equal(small.noise.correct_sq, whole.noise.correct_sq)
    np.testing.assert_array_equal(small.noise.ulp_max, whole.noise.ulp_max)
    np.testing.assert_array_equal(small.exact, whole.exact)


@pytest.mark.parametrize("elements", PARTS)
@pytest.mark.parametrize("has_padding", [False, True])
def test_differing_elements_of_all_parts_are_found(
    monkeypatch: pytest.MonkeyPatch, elements: int, has_padding: bool
) -> None:
    monkeypatch.setattr(output, "PART_ELEMENTS", elements)
    right = _case().references["input"]
    places = np.array([0, 999, 1000, 12_345, right.bits.size - 1])
    if has_padding:
        written = np.ones(right.bits.size, dtype=np.bool_)
        written[places[-2:]] = False
        right = replace(right, written=written)
    bits = right.bits.copy()
    bits[places] ^= 1
    found = Output("input", right, bits).differing
    assert found.tolist() == places[: 3 if has_padding else 5].tolist()
