"""What Ray starts on a node, without Ray."""

import asyncio
import importlib
import sys
from pathlib import Path
from typing import Any

import pytest

from kopt.server.pool.seat import UNFIT, AsyncSeat, Seat
from kopt.tools.remote.code_bundle import code_bundle

pytestmark = pytest.mark.slow  # processes that import kopt anew


class Echo:
    """What a seat enters in these tests."""

    def __init__(self, home: str, word: str) -> None:
        """Keep both."""
        self.said = (home, word)

    def say(self, more: str) -> tuple[str, str, str]:
        """Return all."""
        return (*self.said, more)

    async def say_later(self, more: str) -> tuple[str, str, str]:
        """Return all, later."""
        return self.say(more)


@pytest.fixture
def parcel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.setenv("KOPT_HOME", str(tmp_path))
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setitem(sys.modules, "echo", importlib.import_module(__name__))
    return {
        "digest": code_bundle().digest,
        "modules": {"json": "json"},
        "entry": "echo:Echo",
        "arguments": {"word": "hello"},
    }


def test_the_code_is_kept_and_what_was_entered_answers(
    parcel: dict[str, Any], tmp_path: Path
) -> None:
    archive = code_bundle().archive()
    seat = Seat(parcel, archive[:1000], archive[1000:])
    assert seat.ask("say", "x") == (str(tmp_path), "hello", "x")
    code = tmp_path / "remote" / "code" / code_bundle().digest
    assert (code / "kopt" / "server" / "pool" / "seat.py").is_file()
    assert sys.path[0] == str(code)
    again = AsyncSeat(parcel)  # the code is there
    assert asyncio.run(again.ask("say", "y")) == (str(tmp_path), "hello", "y")
    assert asyncio.run(again.ask("say_later", "z")) == (str(tmp_path), "hello", "z")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"modules": {"no_such_module": "no-such>=1"}}, "put into the cluster's image"),
        ({"arguments": {}}, "missing 1 required positional argument: 'word'"),
        ({"entry": "kopt.no_such:Thing"}, "No module named 'kopt.no_such'"),
    ],
)
def test_what_a_node_lacks_is_the_answer_to_every_call(
    parcel: dict[str, Any], changes: dict[str, Any], said: str
) -> None:
    seat = Seat(parcel | changes, code_bundle().archive())
    assert said in seat.ask("say", "x")[UNFIT]


def test_a_home_that_cannot_be_written_is_told(
    parcel: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("KOPT_HOME", str(tmp_path / "file"))
    answer = asyncio.run(AsyncSeat(parcel).ask("say", "x"))
    assert answer[UNFIT].startswith("cannot keep kopt's code: ")
