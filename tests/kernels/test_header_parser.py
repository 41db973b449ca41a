"""Candidate headers: the whole grammar, and one diagnostic with its line for each mistake."""

from pathlib import Path

import pytest

from kopt.kernels.candidate import Candidate
from kopt.kernels.header import HeaderOutcome
from kopt.kernels.header_parser import declared_macros, parse_header
from support.tiny_problem import HEADER, tiny_candidate, tiny_problem

FULL = """\
/* kopt: 1   # the format
family: [vectorization, clusters]
note: "rows: four per block"
where: B <= 32 and H % 64 == 0
specialize: [H]
tune: {BLOCK: [128, 256], ROWS: [1, 2, 4]}
tune_where:
  - BLOCK * ROWS <= 512
  - ROWS <= B
flags: {fast_math: false, max_registers: 64}
scratch:
  partial: {dtype: float32, shape: "B, ceil_div(H, 64)", init: zero}
  counts:
    dtype: int32
    shape: B
tensor_maps:
  x_map: {tensor: x, view: "B, H", box: "ROWS, 64", element_strides: "1, 1", swizzle: 128,
    interleave: none, l2: 256, fill: nan}
  p_map: {tensor: partial, box: 1}
variants:
  - when: B <= 8
    set: {ROWS: 1}
    launch:
      - kernel: first
        grid: ceil_div(B, ROWS), 2
        block: 32, 4
        cluster: 1, 2
        smem: ROWS * H * 4
        pdl: true
        carveout: max_shared
        args: [x_map, partial, B, {int32: ROWS * 2}, {int64: "B * H"}]
      - kernel: second
        grid: min(blocks_per_sm * SM_COUNT, B)
        block: BLOCK
        cooperative: true
        args: [partial, out, scale]
  - when: true
    launch: [{kernel: scale_rows, grid: B, block: BLOCK, args: [x, out, H, scale]}]
*/
"""


def parsed(tmp_path: Path, header: str) -> HeaderOutcome:
    return parse_header(tiny_candidate(header), tiny_problem(tmp_path))


def test_the_whole_grammar_is_read(tmp_path: Path) -> None:
    outcome = parsed(tmp_path, FULL)
    assert outcome.diagnostics == ()
    header = outcome.header
    assert header is not None
    assert header.family == ("vectorization", "clusters")
    assert header.note == "rows: four per block"
    assert header.specialize == ("H",)
    assert header.tune == {"BLOCK": (128, 256), "ROWS": (1, 2, 4)}
    assert (header.flags.fast_math, header.flags.max_registers) == (False, 64)
    assert [(s.name, s.shape, s.init, s.line) for s in header.scratch] == [
        ("partial", ("B", "ceil_div(H, 64)"), "zero", 12),
        ("counts", ("B",), "poison", 13),
    ]
    assert header.tensor_maps[0].view == ("B", "H")
    assert header.tensor_maps[0].swizzle == "128"
    assert header.tensor_maps[1].view is None
    few, rest = header.variants
    assert (few.when, few.set, rest.when) == ("B <= 8", {"ROWS": 1}, "true")
    first, second = few.launch
    assert first.grid == ("ceil_div(B, ROWS)", "2")
    assert first.cluster == ("1", "2")
    assert (first.pdl, first.carveout, first.line) == (True, "max_shared", 24)
    assert (first.args[3].int_type, first.args[3].expression) == ("int32", "ROWS * 2")
    assert second.cooperative


def test_single_launch_is_one_variant_that_always_holds(tmp_path: Path) -> None:
    header = parsed(tmp_path, HEADER).header
    assert header is not None
    assert [variant.when for variant in header.variants] == ["true"]
    assert header.flags.fast_math
    assert header.where == "true"
    assert header.lines["tune"] == 3


def test_windows_line_ends_are_read(tmp_path: Path) -> None:
    assert parsed(tmp_path, HEADER.replace("\n", "\r\n")).header is not None


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("/* kopt: 1\n", "", 1, "no kopt header comment"),
        ("/* kopt", "\n\n/* kopt", 3, "does not open the file"),
        ("/* kopt", "// c\n/* kopt", 2, "does not open the file"),
        ("kopt: 1", "kopt: 2", 1, "expected format version 1, got '2'"),
        ("kopt: 1", 'kopt: "1"', 1, "expected format version 1"),
        ("kopt: 1", "kopt: true", 1, "expected format version 1"),
        ("family: other\n", "", 1, "the key 'family' is missing"),
        ("family: other", "family: vectorisation", 2, "did you mean vectorization?"),
        ("family: other", "family: []", 2, "the list is empty"),
        ("family: other", "family: [other, other]", 2, "stands twice"),
        ("family: other", "famly: other", 2, "did you mean family?"),
        ("family: other", "family: other\nfamily: layout", 3, "stands here and in line 2"),
        ("family: other", "family: &x other", 2, "anchors are not allowed"),
        ("family: other", "\tfamily: other", 2, "not YAML"),
        ("family: other", " * family: other", 2, "not YAML"),
        ("family: other", "family: other\nwhere: B > ", 3, "expected a number or a name"),
        ("family: other", "family: other\nwhere: BLOCK > 1", 3, "unknown name 'BLOCK'"),
        ("family: other", "family: other\nwhere: B > 99", 3, "holds for no workload"),
        ("family: other", "family: other\nwhere: B // (B - 8) > 9", 3, "division by zero"),
        ("family: other", "family: other\nwhere: B", 3, "expected a comparison or true"),
        ("family: other", "family: other\nspecialize: [W]", 3, "unknown axis 'W'; known: B, H, HB"),
        ("family: other", "family: other\nspecialize: H", 3, "expected a list, got 'H'"),
        ("family: other", "family: other\nspecialize: [H, H]", 3, "stands twice"),
        ("family: other", "family: other\nflags: {fastmath: true}", 3, "did you mean fast_math?"),
        ("family: other", "family: other\nflags: {fast_math: 1}", 3, "expected true or false"),
        ("family: other", "family: other\nflags: {max_registers: 512}", 3, "16 to 255"),
        ("{BLOCK: [128, 256]}", "[128]", 3, "tune: expected a mapping"),
        ("BLOCK: [128, 256]", "BLOCK: []", 3, "the list is empty"),
        ("BLOCK: [128, 256]", "BLOCK: 128", 3, "BLOCK: expected a list, got '128'"),
        ("BLOCK: [128, 256]", "BLOCK: [128, 128]", 3, "the value 128 stands twice"),
        ("BLOCK: [128, 256]", "BLOCK: [1.5]", 3, "expected an integer"),
        ("BLOCK: [128, 256]", "BLOCK: [0x80]", 3, "got '0x80'"),
        ("BLOCK: [128, 256]", "BLOCK: [4294967296]", 3, "-2147483648 to 2147483647"),
        ("BLOCK: [128, 256]", "BLOCK: [128], BK: [1]", 3, "'BK' has the wrong form"),
        ("BLOCK: [128, 256]", "BLOCK: [128], BK: [1]", 3, "a tune name has 3 to 32 of A-Z"),
        ("BLOCK: [128, 256]", "BLOCK: [128], R: [1]", 3, "e.g. R_VALUE)"),
        ("BLOCK: [128, 256]", "BLOCK: [128], warps: [1]", 3, "e.g. WARPS)"),
        ("BLOCK: [128, 256]", "BLOCK: [128], HB: [1]", 3, "'HB' is an axis of the problem"),
        ("BLOCK: [128, 256]", "BLOCK: [128], KOPT_SIM: [1]", 3, "is reserved for kopt"),
        ("BLOCK: [128, 256]", "BLOCK: [128], SM_COUNT: [1]", 3, "is reserved for kopt"),
        ("launch:", "tune_where: [BLOCK > 128]\nlaunch:", 4, "refuses the default choice"),
        ("launch:", "tune_where: [BLOCK // 0 > 1]\nlaunch:", 4, "division by zero"),
        ("launch:", "tune_where: [BLOK > 128]\nlaunch:", 4, "did you mean BLOCK?"),
        ("launch:", "scratch: {p: {shape: B}}\nlaunch:", 4, "the key 'dtype' is missing"),
        ("launch:", "scratch: {p: {dtype: fp32, shape: B}}\nlaunch:", 4, "unknown dtype 'fp32'"),
        ("launch:", "scratch: {x: {dtype: int8, shape: B}}\nlaunch:", 4, "the name of a tensor"),
        ("launch:", "scratch: {BLOCK: {dtype: int8, shape: B}}\nlaunch:", 4, "a tune value"),
        ("launch:", "scratch: {a-b: {dtype: int8, shape: B}}\nlaunch:", 4, "no C identifier"),
        ("launch:", 'scratch: {p: {dtype: int8, shape: "B,B,B,B"}}\nlaunch:', 4, "4 expressions"),
        ("launch:", "scratch: {p: {dtype: int8, shape: B, 2}}\nlaunch:", 4, "a key must be text"),
        ("launch:", "scratch: {p: {dtype: int8, shape: B, H}}\nlaunch:", 4, "unknown key 'H'"),
        ("launch:", "tensor_maps: {m: {tensor: y, box: 4}}\nlaunch:", 4, "unknown tensor 'y'"),
        ("launch:", "tensor_maps: {m: {tensor: x}}\nlaunch:", 4, "the key 'box' is missing"),
        ("launch:", "tensor_maps: {m: {tensor: x, box: 4, swizzle: 16}}\nlaunch:", 4, "none, 32,"),
        ("launch:", "variants: []\nlaunch:", 4, "exactly one of launch and variants"),
        ("launch:", "lunch:", 4, "did you mean launch?"),
        ("kernel: scale_rows\n    ", "", 5, "the key 'kernel' is missing"),
        ("kernel: scale_rows", "kernel: scale<1>", 5, "no C identifier"),
        ("grid: B", "grid: B, 1, 1, 1", 6, "4 expressions, at most 3"),
        ("grid: B", "grid: [B, 1]", 6, "got a list"),
        ("grid: B", "grid: true", 6, "got 'true'"),
        ("grid: B", "grid: B,", 6, "expected a number or a name"),
        ("grid: B", "grid: BB", 6, "did you mean B?"),
        ("grid: B", "gird: B", 6, "did you mean grid?"),
        ("grid: B", "grid: B\n    smem: 4, 4", 7, "2 expressions, at most 1"),
        ("grid: B", "grid: B\n    pdl: true\n    cooperative: true", 8, "excludes pdl"),
        ("grid: B", "grid: B\n    carveout: max", 7, "expected one of default"),
        ("block: BLOCK", "block: blocks_per_sm", 7, "unknown name 'blocks_per_sm'"),
        ("args: [x, out, H, scale]", "args: x", 8, "expected a list"),
        ("args: [x, out, H, scale]", "args: [y, out]", 8, "unknown argument 'y'"),
        ("args: [x, out, H, scale]", "args: [x, oot]", 8, "did you mean out?"),
        ("args: [x, out, H, scale]", "args: [x, out, 64]", 8, "{int32: 64}"),
        ("args: [x, out, H, scale]", "args: [x, out, BLOCK]", 8, "write {int32: BLOCK}"),
        ("args: [x, out, H, scale]", "args: [x, out, {int16: H}]", 8, "mean int64 or int32?"),
        ("args: [x, out, H, scale]", "args: [x, out, {int32: H, int64: H}]", 8, "or {int64: expr}"),
        ("args: [x, out, H, scale]", "args: [x, out, {int32: W}]", 8, "unknown name 'W'"),
        ("args: [x, out, H, scale]", "args: [x, H, scale]", 4, "'out' is passed to no launch"),
    ],
)
def test_mistake_is_one_diagnostic_with_its_line(
    tmp_path: Path, old: str, new: str, line: int, message: str
) -> None:
    assert old in HEADER
    outcome = parsed(tmp_path, HEADER.replace(old, new, 1))
    assert outcome.header is None
    matching = [found for found in outcome.diagnostics if message in found.message]
    if not matching:
        hints = [found.hint or "" for found in outcome.diagnostics]
        matching = [
            f for f, hint in zip(outcome.diagnostics, hints, strict=True) if message in hint
        ]
    assert [found.line for found in matching] == [line], outcome.diagnostics


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("when: true", "when: H > 1", "the last variant needs when: true"),
        ("when: B <= 8", "when: true", "variants after it are dead"),
        ("when: B <= 8", "when: ROWS <= 8", "unknown name 'ROWS'"),
        ("when: B <= 8", "when: B // (H - 64) < 1", "division by zero"),
        ("set: {ROWS: 1}", "set: {ROW: 1}", "unknown tune name 'ROW'; did you mean ROWS?"),
        ("set: {ROWS: 1}", "set: {ROWS: one}", "expected an integer"),
        ("launch: [{", "lunch: [{", "did you mean launch?"),
        ("args: [x, out, H, scale]", "args: [x]", "'out' is passed to no launch"),
    ],
)
def test_mistake_in_a_variant_is_reported(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in FULL
    outcome = parsed(tmp_path, FULL.replace(old, new, 1))
    assert outcome.header is None
    assert any(message in found.message for found in outcome.diagnostics), outcome.diagnostics
    assert all(found.line for found in outcome.diagnostics)


def test_each_mistake_of_a_file_is_told_in_one_pass(tmp_path: Path) -> None:
    header = HEADER.replace("other", "otter").replace("grid: B", "grid: Q").replace("x,", "xx,")
    lines = [found.line for found in parsed(tmp_path, header).diagnostics]
    assert sorted(line or 0 for line in lines) == [2, 6, 8]


def test_unquoted_commas_inside_braces_say_what_to_do(tmp_path: Path) -> None:
    header = FULL.replace('{int64: "B * H"}', "{int64: ceil_div(B, H)}")
    assert parsed(tmp_path, header).diagnostics[0].hint == (
        "inside { } a text with commas needs quotes"
    )


def test_open_comment_is_reported(tmp_path: Path) -> None:
    outcome = parse_header(Candidate("/* kopt: 1\nfamily: other\n"), tiny_problem(tmp_path))
    assert "never closed" in outcome.diagnostics[0].message


@pytest.mark.parametrize(
    "source",
    [
        "",
        "/*",
        "/* kopt:*/",
        "/* kopt: 1*/",
        "/* kopt: 1\n- a\n*/",
        "/* kopt: 1\nfamily:\nlaunch:\nvariants:\ntune:\nscratch:\ntensor_maps:\nargs:\n*/",
        "/* kopt: [1\n*/",
        "/* kopt: 1\n? [a]\n: b\n*/",
        "/* kopt: " + "[" * 5000 + "*/",
        "/* kopt: 1\nfamily: " + "- " * 5000 + "*/",
        "/* kopt: 1\n#" + "x" * 100_000 + "*/",
        "/* kopt: 1\nfamily: \ud800*/",
        "/* kopt: 1\nfamily: \x00*/",
        "/* kopt: 1\nlaunch: [1, [2], {a: b}, null]\ntune: {A: {}}\nscratch: {a: 1}*/",
        "/* kopt: 1\nvariants: [1, {when: [1], set: [], launch: {}}]\nspecialize: [[1]]*/",
        "/* kopt: 1\ntune: {" + ", ".join(f"T{i:03}: [1, 2]" for i in range(40)) + "}*/",
        "/* kopt: 1\nlaunch: [{kernel: [], grid: {}, cluster: [], args: [null, []]}]*/",
    ],
)
def test_no_text_makes_the_parser_fail(tmp_path: Path, source: str) -> None:
    outcome = parse_header(Candidate(source), tiny_problem(tmp_path))
    assert outcome.header is None
    assert outcome.diagnostics
    assert all(found.line for found in outcome.diagnostics)


def test_too_many_choices_are_refused(tmp_path: Path) -> None:
    names = ", ".join(f"T{index:03}: [1, 2, 3, 4]" for index in range(9))
    header = HEADER.replace("{BLOCK: [128, 256]}", f"{{BLOCK: [1], {names}}}")
    assert "262144 combinations" in parsed(tmp_path, header).diagnostics[0].message


def test_declared_macros_are_read_without_a_problem() -> None:
    assert declared_macros(FULL) == {"BLOCK", "ROWS", "KOPT_H"}
    assert declared_macros("int x;") == frozenset()
    assert declared_macros("/* kopt: [ */") == frozenset()


@pytest.mark.parametrize(
    ("old", "new", "hint"),
    [
        ("kernel: scale_rows", "kernel: scale<1>", "make it __device__ instead of __global__"),
        ("  - kernel", "\t- kernel", "spaces, not tabs"),
        ("family: other", "family: other\nnote: a: b", "in quotes"),
        ("H, scale]", "H, scale", "not closed"),
    ],
)
def test_unreadable_yaml_says_what_to_do(tmp_path: Path, old: str, new: str, hint: str) -> None:
    (found,) = parsed(tmp_path, HEADER.replace(old, new)).diagnostics
    assert hint in (found.hint or "")


def test_a_mistake_in_an_expression_says_where_after_what(tmp_path: Path) -> None:
    (found,) = parsed(tmp_path, HEADER.replace("grid: B", "grid: 2 * Q")).diagnostics
    assert found.message.endswith("SM_COUNT, blocks_per_sm (in '2 * Q', character 5)")


def test_a_torch_extension_is_told_the_two_ways_on(tmp_path: Path) -> None:
    extension = Candidate("#include <torch/extension.h>\n", "ext.cu")
    (said,) = parse_header(extension, tiny_problem(tmp_path)).diagnostics
    assert said.message == "the file has no kopt header comment"
    assert said.hint is not None
    assert "kopt review FILE" in said.hint and "/* kopt: 1" in said.hint
