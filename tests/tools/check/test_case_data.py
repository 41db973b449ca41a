"""What a problem's own oracle does wrong is told to its author, with the line."""

from pathlib import Path

import pytest

from kopt.config.errors import ToolError
from kopt.tools.check.case_data import CaseKey, make_case_data
from support.tiny_problem import tiny_problem


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            'exact = inputs["x"]',
            'exact = inputs["y"]',
            r"oracle.py:\d+: expected\(\) fails on b8xh64, normal inputs: KeyError: 'y'",
        ),
        ('workload.axes["B"]', "1 // 0", r"oracle.py:\d+: make_inputs\(\) fails .* ZeroDivision"),
        (
            'exact = inputs["x"]',
            "exact = np.ones(1 << 40)",
            r"oracle.py:\d+: expected\(\) fails .*, for whose tensors it may take .* GiB: .*Memory",
        ),
        ('return {"out":', 'return {"output":', r"gives tensors \['output'\]; wanted \['out'\]"),
    ],
)
def test_a_failing_oracle_is_named_with_its_line(
    tmp_path: Path, old: str, new: str, said: str
) -> None:
    problem = tiny_problem(tmp_path)
    path = problem.folder / "oracle.py"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(ToolError, match=said):
        make_case_data(CaseKey(problem, problem.workloads[0], 1, "normal"))


@pytest.mark.parametrize("tolerance", ["fp32", "exact"])
def test_a_problem_may_ask_for_every_bit(tmp_path: Path, tolerance: str) -> None:
    problem = tiny_problem(tmp_path).model_copy(update={"tolerance": tolerance})
    data = make_case_data(CaseKey(problem, problem.workloads[0], 1, "normal"))
    assert data.references["out"].bit_exact == (tolerance == "exact")
