"""Problem folders: what is read, and what each mistake says."""

from pathlib import Path

import pytest

from kopt.config.errors import ToolError
from kopt.kernels.oracle import load_oracle
from kopt.kernels.problem_loader import (
    find_kernel,
    load_problem,
    load_problems,
    readable_problems,
)
from support.tiny_problem import PROBLEM_YAML, write_tiny_problem


def test_every_field_of_a_problem_is_read(tmp_path: Path) -> None:
    problem = load_problem(write_tiny_problem(tmp_path))
    assert problem.axes == {"B": None, "H": None, "HB": "H // 16"}
    assert [tensor.name for tensor in problem.tensors] == ["x", "weight", "out"]
    assert problem.tensor("weight").static
    assert problem.tensor("weight").dtype == "bfloat16"
    assert problem.scalars[0].value == 2.0
    assert problem.workload("b32xh256").axes == {"B": 32, "H": 256, "HB": 16}
    assert problem.kernel_ids == ("scale_rows_b8xh64", "scale_rows_b32xh256")


def test_the_oracle_of_the_tiny_problem_loads(tmp_path: Path) -> None:
    assert load_oracle(load_problem(write_tiny_problem(tmp_path)))


def test_mistakes_are_told_where_the_tolerance_follows_from_the_dtypes(tmp_path: Path) -> None:
    """It cannot follow while the tensors have mistakes; that is none of the user's."""
    folder = write_tiny_problem(tmp_path)
    (folder / "problem.yaml").write_text("name: scale_rows\n")
    with pytest.raises(ToolError, match="the key 'tensors' is missing") as told:
        load_problem(folder)
    assert "tolerance" not in str(told.value)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("op_type: scale\n", "", ":1: problem: the key 'op_type' is missing"),
        ("op_type: scale", "op_typ: scale", "did you mean op_type?"),
        ("op_type: scale", "op_type: 7", ":2: problem: op_type: expected text, got '7'"),
        ("name: scale_rows", "name: Scale", "does not have the form"),
        ("name: scale_rows", "name: scale_row", "differs from its folder 'scale_rows'"),
        ("role: out", "role: output", ":8: tensor out: role: expected one of in, out, inout"),
        ("role: out", "role: in", "nothing would be computed"),
        ("dtype: float32, shape: [B, H]}", "dtype: fp32, shape: [B, H]}", "tensor x: dtype"),
        ("shape: [H]", "shape: [HH]", ":7: tensor weight: shape: unknown axis 'HH'; did you mean"),
        ("shape: [H]", "shape: H", "expected a list"),
        ("static: true", "static: yes", "expected true or false, got 'yes'"),
        ("static: true", "layout: sf_128x4", "at least 2 axes"),
        ('HB: {expr: "H // 16"}', 'HB: {expr: "HX // 16"}', "unknown name 'HX'; did you mean H?"),
        ('HB: {expr: "H // 16"}', 'HB: {expr: "H // 0"}', "division by zero"),
        ('HB: {expr: "H // 16"}', 'HB: {expr: "H // 128"}', "HB = H // 128 is 0"),
        ('HB: {expr: "H // 16"}', "HB: {}", "either {var: true} or {expr: ...}"),
        ("H: {var: true}", "H: {var: 1}", "axes: H: expected either {var: true} or {expr: ...}"),
        ("HB: {", "hb: {", "'hb' does not have the form"),
        ("row_axis: B", "row_axis: R", "row_axis: unknown axis 'R'"),
        ("b8xh64: {axes: {B: 8,", "b8xh64: {axes: {B: 9,", "ask for the name 'b9xh64'"),
        (
            "b8xh64: {axes: {B: 8,",
            "b8xh64: {axes: {B: 0,",
            ":12: workload b8xh64: axes: B: expected",
        ),
        ("b8xh64: {axes", "b8: {axes", "ask for the name 'b8xh64'"),
        ("b8xh64: {axes", "B8: {axes", "does not have the form [a-z]"),
        ("b8xh64: {axes", "b8-h64: {axes", "does not have the form [a-z]"),
        ("H: 64}}", "H: 64}, use: never}", "use: expected one of check, time, both"),
        ("H: 64}}", "H: 64}, scalars: {scal: 1.0}}", "'scal' is no scalar of the problem; did you"),
        ("H: 64}}", "H: 64}, scalars: {scale: big}}", "scale: expected a finite number, got 'big'"),
        ("row_axis: B\n", "precision: fp32\n", "expected one of ieee, tf32, torch"),
        ("{B: 8, H: 64}", "{B: 8}", "no value for H"),
        ("{B: 8, H: 64}", "{B: 8, H: 64, HB: 4}", "'HB' is no variable axis"),
        ("tolerance: fp32", "tolerance: fp6", "expected one of nvfp4, fp8, bf16, fp16, fp32"),
        ("tolerance: fp32", "tolerance: nvfp4", "its outputs are judged by fp32, as their dtypes"),
        ("value: 2.0", "value: 1e999", "expected a finite number"),
        ("value: 2.0", "value: two", "expected a finite number, got 'two'"),
        ("scale: {dtype: float32", "scale: {dtype: int32", "expected an integer, got '2.0'"),
        ("scale: {dtype", "out: {dtype", "the name 'out' stands twice"),
        (
            "flops: B * H",
            "baselines: [{name: lib, entry: lib.scale, layout: row_major}]",
            "baseline 1: entry: 'lib.scale' does not have the form",
        ),
        ("flops: B * H", "flops: B * W", "unknown name 'W'"),
        ("flops: B * H", "flops: *B", "aliases are not allowed"),
        ("flops: B * H", "flops: B\nflops: H", ":16: the key 'flops' stands here and in line 15"),
    ],
)
def test_mistake_is_named_with_file_and_field(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    folder = write_tiny_problem(tmp_path)
    assert old in PROBLEM_YAML
    (folder / "problem.yaml").write_text(PROBLEM_YAML.replace(old, new, 1))
    with pytest.raises(ToolError) as caught:
        load_problem(folder)
    assert message in str(caught.value)
    assert str(folder / "problem.yaml") in str(caught.value)


def test_several_mistakes_are_told_at_once(tmp_path: Path) -> None:
    folder = write_tiny_problem(tmp_path)
    text = PROBLEM_YAML.replace("role: out", "role: o").replace("row_axis: B", "row_axis: Q")
    (folder / "problem.yaml").write_text(text)
    with pytest.raises(ToolError) as caught:
        load_problem(folder)
    assert "tensor out: role" in str(caught.value)
    assert "row_axis" in str(caught.value)


def test_what_follows_from_a_missing_key_is_no_mistake_of_its_own(tmp_path: Path) -> None:
    folder = write_tiny_problem(tmp_path)
    (folder / "problem.yaml").write_text("name: scale_rows\nop_type: scale\n")
    with pytest.raises(ToolError) as caught:
        load_problem(folder)
    told = str(caught.value)
    assert "the key 'tensors' is missing" in told
    assert "tolerance" not in told


def test_mistakes_of_axes_are_told_one_by_one_and_blamed_on_nothing_else(tmp_path: Path) -> None:
    folder = write_tiny_problem(tmp_path)
    axes = '{B: {vra: true}, h: {var: true}, H: {var: true}, HB: {expr: "H /"}}'
    text = PROBLEM_YAML.replace('{B: {var: true}, H: {var: true}, HB: {expr: "H // 16"}}', axes)
    (folder / "problem.yaml").write_text(text)
    with pytest.raises(ToolError) as caught:
        load_problem(folder)
    told = [line.split(": ", 1)[1] for line in str(caught.value).splitlines()]
    assert [line.split(": ")[2] for line in told] == ["B", "h", "HB"]
    assert all(line.startswith("problem: axes: ") for line in told)


@pytest.mark.parametrize(
    "content", [b"", b"\xff\xfe", b"x" * 70_000, b"[1, 2]", b"a: [", b"a: \x00"]
)
def test_file_that_is_no_problem_is_refused(tmp_path: Path, content: bytes) -> None:
    folder = write_tiny_problem(tmp_path)
    (folder / "problem.yaml").write_bytes(content)
    with pytest.raises(ToolError, match=r"problem\.yaml"):
        load_problem(folder)


def test_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="cannot read"):
        load_problem(tmp_path)


def test_users_folder_adds_its_problems(tmp_path: Path) -> None:
    folder = write_tiny_problem(tmp_path)
    assert "scale_rows" in load_problems(tmp_path)
    assert "scale_rows" in load_problems(folder)
    assert "scale_rows" not in load_problems()


def test_name_of_a_packaged_problem_is_refused(tmp_path: Path) -> None:
    taken = next(iter(load_problems()))
    folder = write_tiny_problem(tmp_path).rename(tmp_path / taken)
    (folder / "problem.yaml").write_text(PROBLEM_YAML.replace("scale_rows", taken, 1))
    with pytest.raises(ToolError, match="exists already"):
        load_problems(tmp_path)


def test_folder_of_a_workspace_may_be_missing_or_empty(tmp_path: Path) -> None:
    folder = tmp_path / "kopt_problems"
    packaged = set(load_problems())
    assert set(load_problems(folder)) == packaged
    folder.mkdir()
    assert set(load_problems(folder)) == packaged
    write_tiny_problem(folder)
    assert set(load_problems(folder)) == packaged | {"scale_rows"}


def test_folder_without_problems_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match=r"no folder with a problem\.yaml"):
        load_problems(tmp_path)
    with pytest.raises(ToolError, match="not a folder"):
        load_problems(tmp_path / "absent")


def test_kernel_is_found_by_its_id(tmp_path: Path) -> None:
    write_tiny_problem(tmp_path)
    problem, workload = find_kernel("scale_rows_b32xh256", tmp_path)
    assert (problem.name, workload.axes["H"]) == ("scale_rows", 256)


def test_unknown_kernel_id_names_near_matches(tmp_path: Path) -> None:
    write_tiny_problem(tmp_path)
    with pytest.raises(ToolError, match="did you mean scale_rows_b32xh256"):
        find_kernel("scale_rows_b32xh255", tmp_path)
    with pytest.raises(ToolError, match="is a problem; its kernel ids are scale_rows_b8xh64"):
        find_kernel("scale_rows", tmp_path)


def test_finding_one_kernel_reads_no_other_problem(tmp_path: Path) -> None:
    write_tiny_problem(tmp_path)
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "problem.yaml").write_text("name: [")
    assert find_kernel("scale_rows_b8xh64", tmp_path)[0].name == "scale_rows"
    with pytest.raises(ToolError, match=r"broken/problem\.yaml"):
        find_kernel("scale_rows_b9xh64", tmp_path)


@pytest.mark.parametrize(
    ("old", "new", "tolerance"),
    [
        ("tolerance: fp32\n", "", "fp32"),
        ("tolerance: fp32", "tolerance: exact", "exact"),
        ("out: {role: out, dtype: float32", "out: {role: out, dtype: float16", "fp16"),
        ("out: {role: out, dtype: float32", "out: {role: out, dtype: int32", "exact"),
        ("out: {role: out, dtype: float32", "out: {role: out, dtype: float8_e5m2", "fp8"),
    ],
)
def test_what_is_asked_of_outputs_follows_from_their_dtypes(
    tmp_path: Path, old: str, new: str, tolerance: str
) -> None:
    folder = write_tiny_problem(tmp_path)
    text = PROBLEM_YAML
    if "dtype" in old:
        text = text.replace("tolerance: fp32\n", "")
    assert old in text
    (folder / "problem.yaml").write_text(text.replace(old, new, 1))
    assert load_problem(folder).tolerance == tolerance


def test_a_problem_without_its_oracle_is_refused_wherever_it_is_read(tmp_path: Path) -> None:
    folder = write_tiny_problem(tmp_path)
    (folder / "oracle.py").unlink()
    with pytest.raises(ToolError, match=r"oracle\.py is missing: every problem needs its oracle"):
        load_problems(tmp_path)


def test_an_id_in_capitals_is_near_the_one_that_is_meant() -> None:
    with pytest.raises(ToolError, match="did you mean silu_and_mul_b8xh14336"):
        find_kernel("SILU_AND_MUL_B8XH14336")


def test_unknown_kernel_beside_a_folder_of_problems_says_how_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "kopt_problems").mkdir()
    write_tiny_problem(tmp_path / "kopt_problems")
    with pytest.raises(ToolError, match="are known with --problems kopt_problems"):
        find_kernel("scale_rows_b8xh64")
    problem, _ = find_kernel("scale_rows_b8xh64", Path("kopt_problems"))
    assert problem.name == "scale_rows"


def test_a_folder_that_cannot_be_read_hides_no_packaged_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_tiny_problem(tmp_path)

    def refusing(path: Path) -> bool:  # as for a user who is not root
        if path.is_relative_to(tmp_path):
            raise PermissionError(13, "Permission denied", str(path))
        return is_file(path)

    is_file = Path.is_file
    packaged = load_problems()
    monkeypatch.setattr(Path, "is_file", refusing)
    problems, mistakes = readable_problems(tmp_path)
    assert problems.keys() == packaged.keys()
    assert len(mistakes) == 1 and "cannot read " in mistakes[0] and "denied" in mistakes[0]
