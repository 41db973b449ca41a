"""Mutants: what is changed, and that the module is put back."""

from pathlib import Path

import pytest
from mutants import mutants_of, planted

MODULE = '''"""Text with 1 < 2 in it."""


def f(a: int = 1) -> bool:
    """Return a < 3 and more."""
    return a < 3 and not a == 0


@dataclass(frozen=True)
class Point:
    """Text."""
'''
SOURCE = """// 1 < 2
#define LIMIT 4 \\
  + 5
static_assert(sizeof(int) == 4);
/* a
   < 3 */
bool f(std::vector<int>* a) { if (a->size() < 0x10u) return !*a->data(); say("1 < \\"2"); }
"""


@pytest.fixture
def module(tmp_path: Path) -> Path:
    path = tmp_path / "module.py"
    path.write_text(MODULE, "utf-8")
    return path


def test_operators_and_constants_are_changed_but_no_text_or_decorator(module: Path) -> None:
    changes = [(one.line, one.old.strip(), one.new.strip()) for one in mutants_of(module)]
    assert changes == [
        (6, "<", "<="),
        (6, "3", "4"),
        (6, "and", "or"),
        (6, "not", ""),
        (6, "==", "!="),
        (6, "0", "1"),
    ]


def test_the_code_of_a_cpp_source_is_changed(tmp_path: Path) -> None:
    path = tmp_path / "source.cpp"
    path.write_text(SOURCE, "utf-8")
    changes = [(one.line, one.old.strip(), one.new.strip()) for one in mutants_of(path)]
    assert changes == [(7, "", "!"), (7, "<", "<="), (7, "0x10", "17"), (7, "!", "")]


def test_conditions_are_negated_and_statements_left_out(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text(
        "if a:\n    f(\n        b)\nwhile c:\n    d += e if g else h\nraise k\n", "utf-8"
    )
    changes = [(one.line, one.old, one.new) for one in mutants_of(path)]
    assert changes == [
        (1, "a", "not (a)"),
        (2, "f(\n        b)", "pass"),
        (4, "c", "not (c)"),
        (5, "d += e if g else h", "pass"),
        (5, "g", "not (g)"),
        (6, "raise k", "pass"),
    ]
    for mutant in mutants_of(path):
        with planted(mutant):
            compile(path.read_text("utf-8"), "module", "exec")


def test_every_mutant_can_be_compiled(module: Path) -> None:
    for mutant in mutants_of(module):
        with planted(mutant):
            compile(module.read_text("utf-8"), "module", "exec")


def test_the_module_is_put_back_whatever_happens(module: Path) -> None:
    with pytest.raises(KeyboardInterrupt), planted(mutants_of(module)[0]):
        assert "a <= 3" in module.read_text("utf-8")
        raise KeyboardInterrupt
    assert module.read_text("utf-8") == MODULE
