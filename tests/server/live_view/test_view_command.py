"""`kopt view` as a process: its address, a stream that is live, and its end."""

import http.client
import json
import os
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from support.command_line import Kopt
from support.told_run import told_run

pytestmark = pytest.mark.slow  # a server process and its endings
LIMIT_S = 30.0


@contextmanager
def _view(home: Path, *words: str) -> Generator[tuple["subprocess.Popen[str]", str]]:
    """Run `kopt view WORDS` on a free port; yield the process and the address that it printed."""
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "kopt", "view", "--port", "0", *words],
        cwd=home,
        env={**os.environ, "KOPT_HOME": str(home)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        yield process, process.stdout.readline().strip()
    finally:
        process.kill()
        process.communicate()


@contextmanager
def _got(address: str) -> Generator[http.client.HTTPResponse]:
    """Yield the answer to a GET; it may still be coming."""
    found = urlsplit(address)
    connection = http.client.HTTPConnection("127.0.0.1", found.port or 0, timeout=LIMIT_S)
    with closing(connection):
        connection.request("GET", found.path)
        with connection.getresponse() as answer:
            yield answer


def test_change_of_another_process_reaches_an_open_page_and_ctrl_c_ends_the_view_with_130(
    tmp_path: Path,
) -> None:
    with told_run(tmp_path) as store, _view(tmp_path, "run-1") as (process, address):
        assert address.endswith("/runs/run-1")
        with _got(address) as page:
            assert page.status == 200 and b"passed the full check" in page.read()
        with _got(f"{address}/events") as stream:
            assert stream.readline() == b"event: parts\n"
            assert "candidates" in json.loads(stream.readline().removeprefix(b"data: "))
            store.resume(store.reader.state().settings)
            while (line := stream.readline()) != b"event: parts\n":
                assert line in (b"\n", b": still there\n")
            changed = json.loads(stream.readline().removeprefix(b"data: "))
            assert "running: no candidate" in changed["outcome"]
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=LIMIT_S)
        assert (process.returncode, said) == (130, "kopt view ...\n")


def test_each_view_has_a_secret_of_its_own(tmp_path: Path) -> None:
    with _view(tmp_path) as (_, first), _view(tmp_path) as (_, second):
        secrets = {urlsplit(address).path for address in (first, second)}
        assert len(secrets) == 2 and all(len(secret) > 30 for secret in secrets)


def test_port_in_use_is_refused_with_another_way(tmp_path: Path, kopt: Kopt) -> None:
    with _view(tmp_path) as (_, address):
        ending = kopt("view", "--port", str(urlsplit(address).port))
    assert ending.code == 2 and "choose another --port" in ending.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [(("nothing",), "no run matches 'nothing'"), (("--port", "70000"), "0<=x<=65535")],
)
def test_slip_is_refused_before_anything_listens(
    kopt: Kopt, words: tuple[str, ...], said: str
) -> None:
    ending = kopt("view", *words)
    assert ending.code == 2 and said in ending.stderr
