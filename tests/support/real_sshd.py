"""A real sshd of this machine on a port of its own, and an ssh that knows it as `box`.

Keys, known hosts and configuration lie in a folder of the test: the user's own are not touched.
"""

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_PLACES = "/usr/sbin:/sbin:/usr/local/sbin"
_START_S = 30.0


def missing_program() -> str | None:
    """Return which of the programs this machine lacks; None if it has all."""
    path = f"{os.environ.get('PATH', '')}:{_PLACES}"
    names = ("sshd", "ssh", "ssh-keygen", "ssh-keyscan")
    return next((name for name in names if shutil.which(name, path=path) is None), None)


@dataclass(frozen=True)
class RealSshd:
    """A running sshd."""

    folder: Path
    """Holds `bin/ssh`, keys and logs."""
    process: "subprocess.Popen[bytes]"

    @property
    def known_hosts(self) -> Path:
        """What the client knows; empty it to be a stranger."""
        return self.folder / "known_hosts"

    @property
    def identity(self) -> Path:
        """The client's key."""
        return self.folder / "client_key"

    def use_another_key(self) -> None:
        """Let the client have a key that the server does not know."""
        for path in (self.identity, self.identity.with_suffix(".pub")):
            path.unlink()
        _new_key(self.identity)

    def stop(self) -> None:
        """End the server; connections end by themselves."""
        self.process.terminate()
        self.process.wait()


def start_sshd(folder: Path, environment: Mapping[str, str]) -> RealSshd:
    """Start an sshd for this user in `folder`, whose sessions have `environment`."""
    (folder / "bin").mkdir(parents=True)
    host_key, identity = folder / "host_key", folder / "client_key"
    _new_key(host_key)
    _new_key(identity)
    shutil.copy(identity.with_suffix(".pub"), folder / "authorized_keys")
    port = _free_port()
    variables = " ".join(f'{name}="{value}"' for name, value in environment.items())
    (folder / "sshd_config").write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {host_key}\nPidFile none\n"
        f"AuthorizedKeysFile {folder / 'authorized_keys'}\nStrictModes no\nUsePAM no\n"
        "PasswordAuthentication no\nKbdInteractiveAuthentication no\nPermitRootLogin yes\n"
        f"SetEnv {variables}\n"
    )
    if os.geteuid() == 0:  # an empty folder that sshd's unprivileged part is confined to
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    path = f"{os.environ['PATH']}:{_PLACES}"
    program = shutil.which("sshd", path=path)
    assert program is not None
    with (folder / "sshd.log").open("wb") as log:
        process = subprocess.Popen(
            [program, "-D", "-e", "-f", folder / "sshd_config"],
            stderr=log,
            stdin=subprocess.DEVNULL,
        )
    made = RealSshd(folder, process)
    _write_client(folder, port)
    _learn_host(made, port)
    return made


def _write_client(folder: Path, port: int) -> None:
    ssh = shutil.which("ssh")
    (folder / "ssh_config").write_text(
        f"Host box\n  HostName 127.0.0.1\n  Port {port}\n  IdentityFile {folder / 'client_key'}\n"
        f"  IdentitiesOnly yes\n  UserKnownHostsFile {folder / 'known_hosts'}\n"
        "  GlobalKnownHostsFile none\n"
    )
    program = folder / "bin" / "ssh"
    program.write_text(f'#!/bin/sh\nexec {ssh} -F "{folder / "ssh_config"}" "$@"\n')
    program.chmod(0o755)


def _learn_host(server: RealSshd, port: int) -> None:
    """Wait until the server answers, and know its key from then on."""
    deadline = time.monotonic() + _START_S
    while time.monotonic() < deadline and server.process.poll() is None:
        scan = ["ssh-keyscan", "-p", str(port), "127.0.0.1"]
        found = subprocess.run(scan, capture_output=True, check=False)
        if found.stdout:
            server.known_hosts.write_bytes(found.stdout)
            return
    raise AssertionError((server.folder / "sshd.log").read_text())


def _new_key(path: Path) -> None:
    subprocess.run(
        ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path], check=True, capture_output=True
    )


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
