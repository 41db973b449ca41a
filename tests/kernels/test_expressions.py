"""Expressions and predicates: values, refusals, limits."""

from random import Random

import pytest

from kopt.kernels.expressions import (
    ExpressionError,
    check_expression,
    evaluate_expression,
    evaluate_predicate,
    expression_names,
    split_expressions,
)

NAMES = {"B": 128, "H": 2048, "ROWS": 3, "Z": 0}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("7", 7),
        ("B", 128),
        ("B + H * 2", 4224),
        ("(B + H) * 2", 4352),
        ("B - 1 - 1", 126),
        ("H // 16 // 2", 64),
        ("-7 // 2", -4),
        ("-7 % 4", 1),
        ("- -3", 3),
        ("+B", 128),
        ("ceil_div(B, ROWS)", 43),
        ("align_up(B, ROWS)", 129),
        ("min(B, H, ROWS)", 3),
        ("max(B, H)", 2048),
        ("next_pow2(B + 1)", 256),
        ("next_pow2(1)", 1),
        ("  B\t*\n2 ", 256),
        ("007", 7),
        ("9223372036854775807", 2**63 - 1),
    ],
)
def test_expression_has_the_value_of_integer_arithmetic(text: str, value: int) -> None:
    assert evaluate_expression(text, NAMES) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("true", True),
        ("false", False),
        ("B == 128", True),
        ("B < H <= 2048", True),
        ("B < H < 2048", False),
        ("not B > 8 or H != 1", True),
        ("not (B > 8 or H != 1)", False),
        ("B < 8 and H // Z == 1", False),
        ("B >= 8 or H // Z == 1", True),
        ("(B + 1) * 2 < 300 and not false", True),
    ],
)
def test_predicate_is_decided_as_in_python(text: str, value: bool) -> None:
    assert evaluate_predicate(text, NAMES) is value


@pytest.mark.parametrize(
    ("text", "message", "position"),
    [
        ("", "expected a number or a name", 0),
        ("B +", "expected a number or a name", 3),
        ("B / 2", "write // for integer division", 2),
        ("B ** 2", "expected a number or a name", 3),
        ("0x10", "decimal digits only", 0),
        ("1.5", "unexpected '.'", 1),
        ("1_000", "decimal digits only", 0),
        ("B H", "unexpected 'H' after the expression", 2),
        ("(B", "not closed", 0),
        ("B)", "unexpected ')'", 1),
        ("abs(B)", "no function is called 'abs'", 0),
        ("min", "needs its arguments", 0),
        ("min(B)", "takes 2 to 8 arguments, not 1", 0),
        ("ceil_div(B, 2, 3)", "takes 2 arguments, not 3", 0),
        ("ceil_div(B, 2", "not closed", 8),
        ("BB", "did you mean B?", 0),
        ("width", "known: B, H, ROWS, Z", 0),
        ("B // Z", "division by zero", 2),
        ("B % Z", "division by zero", 2),
        ("ceil_div(B, Z)", "must be positive", 0),
        ("next_pow2(Z)", "must be positive", 0),
        ("9223372036854775808", "exceeds 2^63 - 1", 0),
        ("9" * 500, "exceeds 2^63 - 1", 0),
        ("9223372036854775807 + 1", "exceeds 2^63 - 1", 20),
        ("B < H", "expected an integer expression", 2),
        ("B + (B < H)", "expected a number, got a condition", 7),
        ("and", "has nothing before it", 0),
        ("B.real", "unexpected '.'", 1),
        ("B if H else 1", "unexpected 'if'", 2),
        ("__import__(os)", "no function is called", 0),
        ("é", "unexpected", 0),
        ("B" * 513, "at most 512", 0),
        ("(" * 60 + "1" + ")" * 60, "nested deeper", 24),
        ("-" * 500 + "1", "nested deeper", 24),
        ("1" + "+1" * 200, "more than 48 operators", 97),
        ("ceil_div(" * 40, "nested deeper", 216),
    ],
)
def test_bad_expression_is_refused_with_its_place(text: str, message: str, position: int) -> None:
    with pytest.raises(ExpressionError) as caught:
        evaluate_expression(text, NAMES)
    assert message in str(caught.value)
    assert caught.value.position == position


@pytest.mark.parametrize(
    "text", ["B", "B < H + true", "not B", "B and H", "B = 8", "not " * 60 + "true"]
)
def test_bad_predicate_is_refused(text: str) -> None:
    with pytest.raises(ExpressionError):
        evaluate_predicate(text, NAMES)


def test_names_leave_functions_and_words_out() -> None:
    assert expression_names("ceil_div(B, ROWS) < H and true") == {"B", "ROWS", "H"}


def test_check_looks_at_names_that_a_value_would_skip() -> None:
    with pytest.raises(ExpressionError, match="unknown name 'X'"):
        check_expression("true or X > 1", frozenset({"B"}), predicate=True)
    with pytest.raises(ExpressionError, match="known: none"):
        check_expression("B", frozenset())


def test_split_keeps_commas_inside_parentheses() -> None:
    assert split_expressions("ceil_div(B, 2), max(1, min(H, 3)) , 4") == (
        "ceil_div(B, 2)",
        "max(1, min(H, 3))",
        "4",
    )


def _drawn(rng: Random, depth: int) -> str:
    """Return an expression that means the same in Python."""
    if depth == 0 or rng.random() < 0.2:
        return rng.choice(["B", "H", "ROWS", "Z", "1", "17"])
    left, right = _drawn(rng, depth - 1), _drawn(rng, depth - 1)
    form = rng.choice(
        ["{} + {}", "{} - {}", "{}*{}", "{} // {}", "{} % {}", "({} - {})", "min({}, {})"]
    )
    return form.format(left, right) if rng.random() < 0.9 else f"-{left}"


def test_values_are_those_of_python() -> None:
    rng = Random(1)
    for _ in range(500):
        text = _drawn(rng, 4)
        try:
            wanted: int | str = eval(text, {"min": min}, dict(NAMES))
        except ZeroDivisionError:
            wanted = "division by zero"
        try:
            found: int | str = evaluate_expression(text, NAMES)
        except ExpressionError as error:
            found = str(error)
        assert found == wanted or "exceeds" in str(found), text
