"""Reading where nothing can be written: a disk that is read-only or full, mounted for the test."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kopt.config.errors import SetupError
from kopt.search.knowledge.ledger import FILE_NAME
from kopt.search.knowledge.store import KnowledgeStore
from kopt.search.rounds.advance import run_search
from support.built_docs import copy_docs
from support.knowledge_cases import sample
from support.real_clients import environment
from support.scripted_runs import new_store, search

RUN = "run-20260101-000000-000"
READS = (
    *("list", "show silu_and_mul_b8xh14336", "runs", f"runs show {RUN}", "runs --json"),
    *(
        "kb show",
        "kb show --calibration",
        "kb path",
        "kb samples",
        "kb diff --since 0",
        "kb export",
    ),
    *("docs search warp shuffle", "docs sources"),
)
"""Commands that only read."""
WRITES = (f"runs report {RUN}", "kb forget none", "kb import /dev/null")
ALL_IN_ONE = """
import shlex, sys
from kopt.server.cli import main
for line in sys.argv[1:]:
    try: code = main(shlex.split(line))
    except SystemExit as ended: code = ended.code
    print(f"\\n##{code} {line}", flush=True)
"""
MOUNTS = {
    "read-only": "mount --bind {home} {home} && mount -o remount,bind,ro {home}",
    "read-only and empty": "mount -t tmpfs -o ro tmpfs {home}",
    "full and empty": "mount -t tmpfs -o size=64k tmpfs {home} && {{ dd if=/dev/zero"
    " of={home}/fill bs=4k 2>/dev/null || true; }}",
    "full": "mkdir {home}.copy && cp -r {home}/. {home}.copy/ && mount -t tmpfs -o size=8m tmpfs"
    " {home} && cp -r {home}.copy/. {home}/ && {{ dd if=/dev/zero of={home}/fill bs=4k"
    " 2>/dev/null || true; }}",
}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Return a home with a finished run and a base that has learned."""
    made = tmp_path / "home"
    with new_store(made, RUN) as store:
        run_search(search(store))
    with KnowledgeStore(made / "knowledge") as base:
        base.learn([sample(1)])
    return made


def _denied(_path: object, _mode: int) -> bool:
    return False


def _below(home: Path, mount: str, commands: tuple[str, ...]) -> dict[str, int]:
    """Return how commands end in a mount namespace of their own, where `home` is a `mount`."""
    unshare = shutil.which("unshare")
    if unshare is None or (os.geteuid() == 0 and not Path("/proc/self/ns/mnt").exists()):
        pytest.skip("no program makes mount namespaces here")
    script = MOUNTS[mount].format(home=home)
    inner = [unshare, *([] if os.geteuid() == 0 else ["-r"]), "-m", "sh", "-c"]
    if subprocess.run([*inner, script + " && umount " + str(home)], capture_output=True).returncode:
        pytest.skip("this user may not mount in a namespace of their own")
    shutil.rmtree(f"{home}.copy", ignore_errors=True)
    run = subprocess.run(
        [*inner, f'{script} && exec "$@"', "sh", sys.executable, "-c", ALL_IN_ONE, *commands],
        env=environment(home) | {"KOPT_HOME": str(home)},
        cwd=home.parent,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert "Traceback" not in run.stdout + run.stderr, run.stderr
    marks = [line[2:].split(" ", 1) for line in run.stdout.splitlines() if line.startswith("##")]
    return {line: int(code) for code, line in marks}


@pytest.mark.slow  # eleven commands below each mount
@pytest.mark.parametrize(
    "mount",
    [
        *("read-only", "full and empty"),
        *(pytest.param(one, marks=pytest.mark.nightly) for one in ("read-only and empty", "full")),
    ],
)
def test_commands_that_read_do_read(home: Path, mount: str, built_docs: Path) -> None:
    """An empty home is searched without an index; the others have theirs."""
    reads = READS if "empty" not in mount else tuple(one for one in READS if RUN not in one)
    copy_docs(built_docs, home)
    assert _below(home, mount, reads) == dict.fromkeys(reads, 0)


@pytest.mark.slow  # a process for each
def test_commands_that_write_say_why_they_cannot(home: Path) -> None:
    ended = _below(home, "read-only", WRITES)
    assert set(ended.values()) <= {2, 3} and ended[WRITES[0]] == 3


def test_base_that_is_read_is_not_changed(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = {path.name: path.read_bytes() for path in (home / "knowledge").iterdir()}
    monkeypatch.setattr(os, "access", _denied)
    said: list[str] = []
    with KnowledgeStore(home / "knowledge", said.append, for_reading=True) as base:
        assert base.base().version == 1 and len(base.samples()) == 1
        with pytest.raises(SetupError, match=FILE_NAME):
            base.learn([sample(2)])
    assert len(said) == 1 and "nothing is written here, only read" in said[0]
    assert {path.name: path.read_bytes() for path in (home / "knowledge").iterdir()} == before
    with pytest.raises(SetupError, match="cannot write"):
        KnowledgeStore(home / "knowledge")


def test_base_that_is_not_there_is_read_as_the_seed_and_takes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", _denied)
    with KnowledgeStore(tmp_path, for_reading=True) as base:
        assert base.base().version == 0
        with pytest.raises(SetupError):
            base.learn([sample(1)])
