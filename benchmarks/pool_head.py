"""A Ray cluster of one node, for as long as `bench_pool.py` needs it.

It has a folder and a token of its own and meets no other Ray of the machine. Its processes are
children of one, which is told to end them, on Ctrl-C as well, and ends with this process whatever
ends that.
"""

import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from pool_kills import processes_below

from kopt.config.errors import SetupError
from kopt.config.ray_environment import known_ray_cluster, pool_environment
from kopt.config.settings import Settings, all_variables
from kopt.server.jobs.process_tree import living, session_tree
from kopt.server.pool.ray_seam import SIM_RESOURCE

_START_S = 90.0
_LOOK_EVERY_S = 0.1
_STORE_BYTES = 2 << 30
_WITH_PARENT = """
import ctypes, os, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGTERM)
if os.getppid() != int(sys.argv[1]):
    sys.exit(1)
os.execv(sys.executable, [sys.executable, "-P", "-m", "ray.scripts.scripts", *sys.argv[2:]])
"""
"""Asks Linux for SIGTERM when the parent dies, which `exec` keeps (prctl(2))."""


class RayHead:
    """The cluster, while it runs."""

    def __init__(self, address: str, pid: int) -> None:
        """Keep what is known of it."""
        self.address = address
        """The address of the head, HOST:PORT."""
        self.pid = pid
        """The process that all others are below."""


@contextmanager
def ray_head(gpus: int, settings: Settings, *, on_sim: bool) -> Generator[RayHead]:
    """Give a cluster of `gpus` GPUs, or of as many simulators; leaving ends all its processes.

    RAY_TMPDIR and the token are in the environment meanwhile, for those that join it.

    Raises:
        SetupError: Ray does not start; the message has its last lines.
    """
    folder = Path(tempfile.mkdtemp(prefix="kr", dir="/tmp"))  # paths of sockets must be short
    token = folder / "token"
    token.touch(mode=0o600)
    token.write_text(secrets.token_hex(32))
    own = {
        "RAY_TMPDIR": str(folder),
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN_PATH": str(token),
    }
    others = ("RAY_ADDRESS", "RAY_AUTH_TOKEN")
    before = {name: os.environ.get(name) for name in (*own, *others)}
    for name in others:
        os.environ.pop(name, None)
    os.environ.update(own)
    words = _words(gpus, on_sim=on_sim)
    try:
        with (folder / "said").open("wb") as said:
            process = subprocess.Popen(
                [sys.executable, "-P", "-c", _WITH_PARENT, str(os.getpid()), *words],
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C is this process's, which ends it in order
                env=pool_environment(settings, all_variables()),
            )
        try:
            yield RayHead(_address(process, folder), process.pid)
        finally:
            _end(process)
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value
        shutil.rmtree(folder, ignore_errors=True)


def _words(gpus: int, *, on_sim: bool) -> list[str]:
    """Return the words of `ray start`; nothing in them needs a network."""
    offered = {SIM_RESOURCE: gpus} if on_sim else {}
    return [
        "start",
        "--head",
        "--block",
        "--disable-usage-stats",
        "--include-dashboard=false",
        "--node-ip-address=127.0.0.1",
        "--port=0",
        f"--num-gpus={0 if on_sim else gpus}",
        f"--resources={json.dumps(offered)}",
        f"--object-store-memory={_STORE_BYTES}",
    ]


def _address(process: "subprocess.Popen[bytes]", folder: Path) -> str:
    """Return the address once the cluster is there."""
    until = time.monotonic() + _START_S
    environment: Mapping[str, str] = {"RAY_TMPDIR": str(folder)}
    while process.poll() is None and time.monotonic() < until:
        text = (folder / "said").read_text(errors="replace")
        address = known_ray_cluster(environment)
        if address is not None and "Ray runtime started" in text:
            return address
        time.sleep(_LOOK_EVERY_S)
    lines = (folder / "said").read_text(errors="replace").strip().splitlines()
    raise SetupError(f"Ray does not start: {' / '.join(lines[-5:]) or 'it said nothing'}")


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End the cluster's processes at once: told kindly, it would wait half a minute for actors.

    Actors first, so that the process that started them takes note of their ends.
    """
    below = session_tree(process.pid)  # some lead sessions, and are nobody's once the first ends
    for one in processes_below(process.pid, "ray::"):
        _kill(one.pid)
    time.sleep(_LOOK_EVERY_S)
    while left := living(below | session_tree(process.pid)):
        for key in left:
            _kill(key.pid)
        time.sleep(_LOOK_EVERY_S)
    process.wait()


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
