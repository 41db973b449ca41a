"""A Ray cluster of two nodes on this machine, in processes of its own, with GPUs that are none.

Run as a module it is the process that holds them: it prints the cluster's address, then obeys lines
on stdin (`kill` ends a node as a lost machine does, `add` adds one), each answered by a line.
"""

import os
import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import kopt
from kopt.server.jobs.process_tree import session_tree

GPUS = 2
"""Each node has so many GPUs, and as many simulators."""
_STORE_BYTES = 100 << 20


class TwoNodes:
    """The cluster, as a test holds it."""

    def __init__(self, process: "subprocess.Popen[str]", environment: Mapping[str, str]) -> None:
        """Wait until it is there."""
        self.environment = environment
        """For processes that join it."""
        self._process = process
        assert process.stdout is not None
        self.address = process.stdout.readline().strip()
        assert self.address, "the cluster did not start"

    def kill_node(self) -> None:
        """End the node that is not the head, with all that runs there."""
        self._do("kill")

    def add_node(self) -> None:
        """Add another one."""
        self._do("add")

    def pids(self, *words: str) -> list[int]:
        """Return the processes below the cluster whose command has all of `words`."""
        found: list[int] = []
        for key in session_tree(self._process.pid):
            try:
                command = Path(f"/proc/{key.pid}/cmdline").read_bytes().decode(errors="replace")
            except OSError:  # it has ended
                continue
            if all(word in command for word in words):
                found.append(key.pid)
        return sorted(found)

    def _do(self, word: str) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(word, file=self._process.stdin, flush=True)
        assert self._process.stdout.readline().strip() == word


@contextmanager
def two_nodes(home: Path) -> Generator[TwoNodes]:
    """Give a cluster whose actors keep their state in `home`; leaving ends it."""
    folder = Path(tempfile.mkdtemp(prefix="kr", dir="/tmp"))  # paths of sockets must be short
    token = folder / "token"
    token.touch(mode=0o600)
    token.write_text(secrets.token_hex(32))
    roots = (next(iter(kopt.__path__)), Path(__file__).parents[1])
    links = folder / "path"
    links.mkdir()
    (links / "kopt").symlink_to(Path(roots[0]).resolve())
    environment = os.environ | {
        "PYTHONPATH": f"{links}{os.pathsep}{roots[1]}",
        "KOPT_HOME": str(home),
        "RAY_TMPDIR": str(folder),
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN_PATH": str(token),
        "RAY_USAGE_STATS_ENABLED": "0",
        "KOPT_JOBS": "2",
    }
    try:
        with subprocess.Popen(
            [sys.executable, "-P", "-m", "support.pool_cluster"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
            env=environment,
        ) as process:
            try:
                yield TwoNodes(process, environment)
            finally:
                process.communicate()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main() -> None:
    """Hold the cluster until stdin closes."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # Ray prints, too
    resources: dict[str, Any] = {
        "num_cpus": 2,
        "num_gpus": GPUS,
        "resources": {"kopt_sim": GPUS},
        "object_store_memory": _STORE_BYTES,
    }
    head = resources | {"include_dashboard": False}
    made = import_module("ray.cluster_utils").Cluster(initialize_head=True, head_node_args=head)
    nodes = [made.add_node(**resources)]
    print(made.address, file=answers, flush=True)
    for line in sys.stdin:
        if line.strip() == "kill":
            made.remove_node(nodes.pop(), allow_graceful=False)
        else:
            nodes.append(made.add_node(**resources))
        print(line.strip(), file=answers, flush=True)
    made.shutdown()


if __name__ == "__main__":
    main()
