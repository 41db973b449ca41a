"""Careless calls are answered as the rules of benchmarks/careless_calls.py ask.

Slow: some of the calls compile.
"""

from pathlib import Path

import pytest
from careless_calls import judge, judge_all
from careless_cases import CASES, GOOD, Case, write_mistakes

from support.built_docs import copy_docs
from support.shared_caches import share_caches


@pytest.mark.slow  # some of the calls compile
def test_careless_calls_are_answered_by_what_to_do(
    tmp_path: Path, shared_caches: Path, built_docs: Path
) -> None:
    copy_docs(built_docs, share_caches(tmp_path / "home", shared_caches))
    found = list(judge_all(CASES, tmp_path))
    bad = [
        f"{one.case.name}: {'; '.join(one.faults)}\n{one.said[:400]}" for one in found if one.faults
    ]
    assert len(found) - len(bad) >= GOOD * len(found), "\n".join(bad)
    assert not [one for one in bad if "a traceback" in one]


def test_each_rule_can_be_broken(tmp_path: Path) -> None:
    write_mistakes(tmp_path)
    right = Case("show nosuchkernel", 2, "kopt list")
    assert judge(right, tmp_path).faults == ()
    wrong = Case("show nosuchkernel", 3, "the moon", lines=0)
    assert judge(wrong, tmp_path).faults == (
        "ends with 2, not 3",
        "1 lines on stderr",
        "does not say 'the moon'",
    )


def test_the_table_has_every_command_and_a_hundred_calls() -> None:
    from kopt.server.cli import COMMANDS

    called = {word for case in CASES for word in f"{case.line} {case.shell}".split()}
    assert len(CASES) >= 100
    assert set(COMMANDS) - called == set()
