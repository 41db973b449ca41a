"""Guard: no process that kopt starts inherits the whole environment, where keys are."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from kopt.tools.docs.library.git_program import run_git

ROOT = Path(__file__).parents[1]
STARTERS = ("subprocess.run", "subprocess.Popen", "subprocess.check_output", "subprocess.call")
EXCEPTIONS = {
    "server/jobs/guard.py",  # is itself started without secrets
    "tools/docs/library/git_program.py",  # tested below
}


def _calls(path: Path) -> Iterator[ast.Call]:
    text = path.read_text("utf-8")
    # Most files start nothing, and to look at every node of all takes seconds.
    for node in ast.walk(ast.parse(text)) if "subprocess" in text else ():
        if isinstance(node, ast.Call) and ast.unparse(node.func) in STARTERS:
            yield node


def test_every_process_is_given_an_environment() -> None:
    inheriting: set[str] = set()
    for layer in ("config", "kernels", "tools", "search", "server"):
        for path in sorted((ROOT / layer).rglob("*.py")):
            for call in _calls(path):
                if not any(keyword.arg == "env" for keyword in call.keywords):
                    inheriting.add(str(path.relative_to(ROOT)))
    assert inheriting == EXCEPTIONS


@pytest.mark.parametrize("name", ["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "PINECONE_API_KEY"])
def test_git_gets_no_key_of_kopt(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "made-up-secret")
    monkeypatch.setenv("TOKEN_OF_A_CREDENTIAL_HELPER", "needed")
    told = run_git("-c", "alias.told=!env", "told")
    assert b"made-up-secret" not in told
    assert b"TOKEN_OF_A_CREDENTIAL_HELPER=needed" in told
