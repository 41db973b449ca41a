"""Which sockets a confined program may have: none, a local one to listen at, or all local ones."""

import json
import socket
from dataclasses import replace
from pathlib import Path

import pytest

from kopt.config.settings import Settings
from support.sandbox_level import LEVELS, Level, open_level


@pytest.fixture(params=LEVELS)
def level(request: pytest.FixtureRequest, settings: Settings, tmp_path: Path) -> Level:
    return open_level(request.param, settings, tmp_path)


def test_network_is_refused(level: Level) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        run = level.run(f"import socket; socket.create_connection(('127.0.0.1', {port}))")
    assert run.returncode == 1
    assert b"PermissionError" in run.stderr


def test_unix_sockets_are_given_alone(level: Level) -> None:
    policy = replace(level.policy, unix_sockets=True)
    code = (
        "import socket\n"
        "one, other = socket.socketpair(); one.send(b'heard'); print(other.recv(5).decode())\n"
        "server = socket.socket(socket.AF_UNIX); server.bind('\\0kopt-test'); server.listen()\n"
        "client = socket.socket(socket.AF_UNIX); client.connect('\\0kopt-test'); print('met')\n"
        "for family in (socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK):\n"
        "    try: socket.socket(family)\n"
        "    except PermissionError: print('refused')\n"
    )
    run = level.run(code, policy)
    assert run.stdout.decode().split() == ["heard", "met", *["refused"] * 3], run.stderr


def test_a_process_with_devices_may_listen_locally_and_no_more(level: Level) -> None:
    code = (
        "import json, socket; found = {}\n"
        "def attempt(name, action):\n"
        "    try: action(); found[name] = 'done'\n"
        "    except PermissionError: found[name] = 'refused'\n"
        "local = socket.socket(socket.AF_UNIX)\n"
        "attempt('bind', lambda: local.bind('\\0kopt-test-%d' % __import__('os').getpid()))\n"
        "attempt('listen', local.listen)\n"
        "attempt('connect', lambda: socket.socket(socket.AF_UNIX).connect('/nowhere'))\n"
        "attempt('inet', lambda: socket.socket(socket.AF_INET))\n"
        "attempt('netlink', lambda: socket.socket(socket.AF_NETLINK))\n"
        "print(json.dumps(found))"
    )
    run = level.run(code, replace(level.policy, devices=(Path("/dev/null"),)))
    assert json.loads(run.stdout) == {
        "bind": "done",
        "listen": "done",
        "connect": "refused",
        "inet": "refused",
        "netlink": "refused",
    }


def test_without_devices_there_is_no_socket_at_all(level: Level) -> None:
    run = level.run("import socket; socket.socket(socket.AF_UNIX)")
    assert b"PermissionError" in run.stderr
