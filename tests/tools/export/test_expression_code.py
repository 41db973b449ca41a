"""Expressions of headers as C++ and Python: they have the values that kopt gives them."""

import subprocess
from itertools import product
from pathlib import Path

import pytest

from kopt.config.settings import Settings
from kopt.kernels.expressions import evaluate_expression, evaluate_predicate
from kopt.tools.export.expression_code import (
    cpp_expression,
    cpp_predicate,
    cpp_product,
    divisibility,
    python_expression,
)
from kopt.tools.export.file_text import filled

EXPRESSIONS = (
    "B",
    "B - H",
    "(B - H) // 7",
    "(B - H) % 7",
    "B - (H - 3)",
    "B // (H // 2 + 1) * 3",
    "B * (H + 1) // 4",
    "ceil_div(B * H, 16) * 2",
    "align_up(B + 1, 4) - B",
    "min(B, H, 5) + max(B, 2 * H)",
    "next_pow2(B + H)",
    "-B + 40",
)
PREDICATES = (
    "true",
    "B <= 8 and H % 4 == 0",
    "not (B == 3 or H > 20) and B != 9",
    "1 <= B < 8 or H == 33",
    "B <= 4 or H >= 16 and B < 9",
)
SHAPES = tuple(product((1, 3, 8, 17), (1, 4, 16, 33)))


def compiled_values(lines: list[str], folder: Path) -> list[int]:
    """Return what a program prints that evaluates `lines` at every shape, in that order."""
    body = "".join(f'  std::printf("%lld\\n", static_cast<long long>({line}));\n' for line in lines)
    (folder / "integers.h").write_text(filled("integers.h", name="tested"))
    (folder / "main.cpp").write_text(
        '#include "integers.h"\n#include <cstdio>\nusing namespace tested;\n'
        f"void at(std::int64_t B, std::int64_t H) {{\n{body}}}\nint main() {{\n"
        + "".join(f"  at({B}, {H});\n" for B, H in SHAPES)
        + "}\n"
    )
    program = folder / "main"
    words = [Settings(home=folder).gxx, "-std=c++17", "-Wall", "-Werror", "-o", str(program)]
    subprocess.run([*words, str(folder / "main.cpp")], check=True)
    done = subprocess.run([str(program)], check=True, capture_output=True, text=True)
    return [int(line) for line in done.stdout.split()]


def test_cpp_has_the_values_of_the_header(tmp_path: Path) -> None:
    lines = [cpp_expression(text) for text in EXPRESSIONS]
    lines += [cpp_predicate(text) for text in PREDICATES]
    expected = [
        int(value)
        for B, H in SHAPES
        for value in (
            *(evaluate_expression(text, {"B": B, "H": H}) for text in EXPRESSIONS),
            *(evaluate_predicate(text, {"B": B, "H": H}) for text in PREDICATES),
        )
    ]
    assert compiled_values(lines, tmp_path) == expected


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_python_has_the_values_of_the_header(text: str) -> None:
    shown = python_expression(text)
    for B, H in SHAPES:
        assert eval(shown, {"B": B, "H": H}) == evaluate_expression(text, {"B": B, "H": H}), shown


def test_a_product_keeps_its_factors_together() -> None:
    assert cpp_product(("B", "H + 1", "4")) == "B * (H + 1) * 4"
    assert cpp_product(("4", "B // 2")) == "4 * (B / 2)"


def test_names_of_the_build_take_their_values() -> None:
    assert cpp_predicate("BLOCK * 8 <= H", {"BLOCK": "256"}) == "256 * 8 <= H"


def test_only_a_quotient_by_a_number_asks_for_multiples() -> None:
    texts = ("K // 16", "K * 2", "K // 2 + 1", "(K + 1) // 2", "K // M")
    assert [divisibility(text) for text in texts] == [("K", 16), None, None, None, None]
