"""Who uses a KOPT_HOME: many at once, or one that clears it alone."""

import subprocess
import sys
from pathlib import Path

import pytest

from kopt.config.errors import InfraError
from kopt.config.home_use import deleted_caches_told, home_alone, using_home

HOLD = """
import sys
from pathlib import Path
from kopt.config.home_use import using_home
with using_home(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_home_in_use_by_another_process_is_nobody_s_alone(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-P", "-c", HOLD, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as other:
        assert other.stdout is not None and other.stdout.readline() == b"held\n"
        with using_home(tmp_path), home_alone(tmp_path) as is_alone:
            assert not is_alone
        other.kill()
    with home_alone(tmp_path) as is_alone:
        assert is_alone


def test_home_that_is_not_there_is_used_and_never_made(tmp_path: Path) -> None:
    home = tmp_path / "none"
    with using_home(home), home_alone(home) as is_alone:
        assert not is_alone
    assert not home.exists()


def test_cached_file_that_is_gone_was_deleted_and_is_no_bug(tmp_path: Path) -> None:
    gone = tmp_path / "cache" / "sim" / "runtime.o"
    said = r"runtime\.o was deleted while kopt worked"
    with pytest.raises(InfraError, match=said), deleted_caches_told(tmp_path):
        gone.read_bytes()


@pytest.mark.parametrize("name", ["problem.yaml", "cached/runtime.o"])
def test_other_file_that_is_gone_is_told_as_it_is(tmp_path: Path, name: str) -> None:
    with pytest.raises(FileNotFoundError, match=name), deleted_caches_told(tmp_path):
        (tmp_path / name).read_bytes()
