"""Members of a wheel that stays where it is: what is fetched, kept and refused."""

import dataclasses
import random
from pathlib import Path

import pytest

from kopt.config.settings import Settings
from kopt.tools.docs.library.archives import members_digest
from kopt.tools.docs.library.download import downloads_folder
from kopt.tools.docs.library.pins import MemberRule, PackagePin
from kopt.tools.docs.library.remote_members import remote_members
from kopt.tools.docs.sources import SourceUnavailable
from support.archives import KERNEL, wheel
from support.package_server import PackageServer

MEMBERS = [("cuda/Atomic.cuh", KERNEL), ("cuda/Sort.cuh", KERNEL * 2)]
WHEEL = wheel(
    {
        "torch/lib/large.so": random.Random(7).randbytes(3_000_000),
        **{f"torch/include/{path}": data for path, data in MEMBERS},
    }
)
PIN = PackagePin(
    project="torch",
    version="2.0",
    filename="torch-2.0.whl",
    members_sha256=members_digest(MEMBERS),
    size_bytes=len(WHEEL),
    is_default=True,
    members=(MemberRule(under="torch/include/", strip="torch/include/"),),
)


def _fetch(settings: Settings, pin: PackagePin = PIN) -> list[tuple[str, bytes]]:
    return remote_members(pin, settings, lambda done, total: None)


def _refusal(settings: Settings, pin: PackagePin = PIN) -> str:
    with pytest.raises(SourceUnavailable) as refused:
        _fetch(settings, pin)
    return str(refused.value)


@pytest.fixture(autouse=True)
def served_wheel(server: PackageServer) -> None:
    """Serve the pinned wheel."""
    server.files[PIN.filename] = WHEEL


def test_selected_members_come_without_the_rest(server: PackageServer, settings: Settings) -> None:
    seen: list[int] = []
    members = remote_members(PIN, settings, lambda done, total: seen.append(done))
    assert sorted(members) == MEMBERS
    assert seen[-1] < len(WHEEL) / 2


def test_members_are_kept_for_the_next_time(server: PackageServer, settings: Settings) -> None:
    first = _fetch(settings)
    asked = len(server.asked)
    assert sorted(_fetch(settings)) == sorted(first)
    assert len(server.asked) == asked


def test_damaged_copy_is_fetched_again(settings: Settings) -> None:
    _fetch(settings)
    kept = next(downloads_folder(settings).glob("*.members.zip"))
    kept.write_bytes(kept.read_bytes()[:-30])
    assert sorted(_fetch(settings)) == MEMBERS


def test_copy_with_other_content_is_not_used(settings: Settings) -> None:
    _fetch(settings)
    kept = next(downloads_folder(settings).glob("*.members.zip"))
    kept.write_bytes(wheel({"cuda/Atomic.cuh": b"something else"}))
    assert sorted(_fetch(settings)) == MEMBERS


def test_other_members_than_pinned_are_not_used(settings: Settings) -> None:
    pin = PIN.model_copy(update={"members_sha256": "0" * 64})
    assert "not used" in _refusal(settings, pin)
    assert list(downloads_folder(settings).glob("*.zip")) == []


def test_members_that_unpack_to_too_much_are_not_used(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"{remote_members.__module__}.MOST_BYTES", 3 * len(KERNEL) - 1)
    assert "unpack to more than" in _refusal(settings)


def test_host_without_ranges_is_named(server: PackageServer, settings: Settings) -> None:
    server.has_ranges = False
    assert "HTTP ranges" in _refusal(settings)


def test_cut_answer_is_no_member(server: PackageServer, settings: Settings) -> None:
    server.faults.append("cut")
    assert "127.0.0.1" in _refusal(settings)


def test_wheel_of_another_size_is_refused(settings: Settings) -> None:
    pin = PIN.model_copy(update={"size_bytes": len(WHEEL) + 5})
    assert "other parts" in _refusal(settings, pin)


def test_file_that_is_no_wheel_is_refused(server: PackageServer, settings: Settings) -> None:
    server.files[PIN.filename] = bytes(len(WHEEL))
    assert "cannot be read" in _refusal(settings)


def test_unreachable_index_is_one_line(settings: Settings, tmp_path: Path) -> None:
    closed = dataclasses.replace(settings, package_index="http://127.0.0.1:1/simple")
    assert "--installed" in _refusal(closed)
