"""A resident evaluator behind a port: who is let in, who is not, and what callers find there."""

import http.client
import socket
import threading
import time
from collections.abc import Generator
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from kopt.config.callbacks import ignore
from kopt.config.errors import SetupError
from kopt.config.pollable_event import PollableEvent
from kopt.config.remote_address import remote_address
from kopt.config.settings import Settings
from kopt.kernels.problem_loader import load_problem
from kopt.kernels.status import Status
from kopt.server.commands.gpu_serve import certificates_in
from kopt.server.exits import ExitCode
from kopt.server.protocol.web.listen_address import HttpOptions, open_doorway
from kopt.server.protocol.web.token_file import write_token
from kopt.server.resident import evaluator
from kopt.server.resident.evaluator import ResidentEvaluator
from kopt.server.resident.shared_gpu import SharedGpu
from kopt.server.resident.web_door import WebDoor
from kopt.tools.devices.timer import LibraryRun
from kopt.tools.remote import web_route
from kopt.tools.remote.code_bundle import CodeBundle, code_bundle
from kopt.tools.remote.device import RemoteGpu
from kopt.tools.remote.open_remote import open_remote
from kopt.tools.remote.web_upgrade import CODE_HEADER, PROTOCOL
from support.bench_results import H100
from support.certificates import write_certificate
from support.command_line import Kopt
from support.far_twin import workers_opener
from support.scripted_device import INPUTS, library_side
from support.shared_caches import share_caches
from support.tiny_problem import write_tiny_problem

BOUND_S = 60.0


class _Served(NamedTuple):
    """An evaluator that listens, and the settings of a caller whom it lets in."""

    port: int
    token: str
    settings: Settings
    certificate: Path

    @property
    def device(self) -> str:
        return f"https://localhost:{self.port}/cuda:0"

    def opened(self, device: str = "") -> RemoteGpu:
        address = remote_address(device or self.device)
        opened = open_remote(address, self.settings, ignore)
        assert isinstance(opened, RemoteGpu)
        return opened

    def says(self, **changed: str) -> tuple[int, str]:
        """Return status and body of the answer to a request with other headers than a caller's."""
        headers = {
            "Host": "localhost",
            "Authorization": f"Bearer {self.token}",
            "Connection": "upgrade",
            "Upgrade": PROTOCOL,
            CODE_HEADER: code_bundle().digest,
        }
        target = changed.pop("target", "/cuda:0")
        for name, value in changed.items():
            headers[name.replace("_", "-")] = value
        connection = http.client.HTTPConnection("localhost", self.port, timeout=BOUND_S)
        with closing(connection):
            connection.request("GET", target, headers=headers)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()


def _serving(
    folder: Path, shared_caches: Path, options: HttpOptions, certificate: Path | None
) -> Generator[int]:
    """Serve workers that play a GPU, and give the port."""
    settings = Settings(home=share_caches(folder / "there", shared_caches))
    doorway = open_doorway(options)
    gpu = SharedGpu("cuda:0", workers_opener(settings, PollableEvent()))
    door = WebDoor(doorway, "cuda:0", certificates_in(certificate, None))
    with ResidentEvaluator([door], settings, gpu, None) as serving:
        thread = threading.Thread(target=serving.serve)
        thread.start()
        yield doorway.listener.getsockname()[1]
        serving.end()
        thread.join(BOUND_S)
        assert not thread.is_alive()


@pytest.fixture
def token(tmp_path: Path) -> Path:
    """Return a file with a token."""
    path = tmp_path / "token"
    write_token(path)
    return path


@pytest.fixture
def plain(tmp_path: Path, shared_caches: Path, token: Path) -> Generator[_Served]:
    """Return an evaluator behind a proxy that speaks TLS for it: the requests come plain."""
    settings = Settings(
        home=share_caches(tmp_path / "here", shared_caches), device_token_file=token
    )
    for port in _serving(tmp_path, shared_caches, HttpOptions(port=0, token_file=token), None):
        yield _Served(port, token.read_text().strip(), settings, tmp_path)


@pytest.fixture
def served(
    tmp_path: Path, shared_caches: Path, token: Path, monkeypatch: pytest.MonkeyPatch
) -> Generator[_Served]:
    """Return an evaluator that speaks TLS, whose certificate is trusted."""
    certificate = write_certificate(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    settings = Settings(
        home=share_caches(tmp_path / "here", shared_caches), device_token_file=token
    )
    options = HttpOptions(port=0, token_file=token)
    for port in _serving(tmp_path, shared_caches, options, certificate):
        yield _Served(port, token.read_text().strip(), settings, certificate)


@pytest.mark.slow  # a worker is a Python of its own
def test_a_call_runs_there_and_its_outputs_come_back(served: _Served, tmp_path: Path) -> None:
    problem = load_problem(write_tiny_problem(tmp_path))
    with closing(served.opened()) as device:
        assert (device.name, device.facts, device.gpu.arch) == (served.device, H100, "sm_90a")
        workload = problem.workload("b8xh64")
        run = LibraryRun(problem, workload, library_side(), INPUTS, poison=0xA5)
        outcome = device.run_library(run)
    assert outcome.status is Status.PASSED
    np.testing.assert_array_equal(outcome.outputs["out"], 2 * INPUTS["x"])


def test_a_certificate_that_nobody_vouches_for_is_refused(
    served: _Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SSL_CERT_FILE")
    with pytest.raises(SetupError, match="certificate is not trusted here"):
        served.opened()


def test_a_server_without_tls_is_told(plain: _Served) -> None:
    with pytest.raises(SetupError, match=r"speaks no TLS|nothing answers there"):
        plain.opened()


def test_a_port_behind_which_nothing_is_is_told(served: _Served) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(SetupError, match="nothing answers there"):
        served.opened(f"https://localhost:{port}/cuda:0")


def test_a_machine_that_is_gone_without_a_word_is_missed_in_a_minute_or_two(
    plain: _Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[socket.socket] = []
    connect = socket.create_connection

    def connected(address: tuple[str, int], limit_s: float) -> socket.socket:
        made.append(connect(address, limit_s))
        return made[0]

    monkeypatch.setattr(socket, "create_connection", connected)
    with closing(plain.opened(f"http://localhost:{plain.port}")):
        limit_ms = made[0].getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT)
        assert 30_000 <= limit_ms <= 120_000


def test_a_server_that_hangs_up_without_a_word_is_told(plain: _Served) -> None:
    def hang_up() -> None:
        connection, _ = listener.accept()
        with connection:
            while not connection.recv(4096).endswith(b"\r\n\r\n"):
                pass

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=hang_up)
        thread.start()
        port = listener.getsockname()[1]
        with pytest.raises(SetupError, match="too many callers"):
            plain.opened(f"http://127.0.0.1:{port}")
        thread.join(BOUND_S)


def test_another_version_of_kopt_is_refused(
    plain: _Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = CodeBundle("0" * 32, code_bundle().root)
    monkeypatch.setattr(web_route, "code_bundle", lambda: other)
    with pytest.raises(SetupError, match="install the same version on both"):
        plain.opened(f"http://localhost:{plain.port}")


def test_another_gpu_than_the_one_served_is_refused(plain: _Served) -> None:
    with pytest.raises(SetupError, match="the GPU here is cuda:0, not cuda:1"):
        plain.opened(f"http://localhost:{plain.port}/cuda:1")


def test_a_caller_without_a_token_is_told_how_to_send_one(plain: _Served) -> None:
    stranger = plain._replace(settings=replace(plain.settings, device_token_file=None))
    with pytest.raises(SetupError, match="KOPT_DEVICE_TOKEN_FILE names a file"):
        stranger.opened(f"http://localhost:{plain.port}")


@pytest.mark.parametrize(
    ("changed", "status"),
    [
        ({"Authorization": "Bearer " + "x" * 43}, 401),
        ({"Authorization": "Basic eDp5"}, 401),
        ({"Host": "rebound.example"}, 421),
        ({"Origin": "http://localhost"}, 403),
        ({"Upgrade": "websocket"}, 426),
        ({"target": "/"}, 404),
        ({CODE_HEADER: ""}, 409),
    ],
)
def test_requests_of_no_caller_are_refused(
    plain: _Served, changed: dict[str, str], status: int
) -> None:
    found, body = plain.says(**changed)
    assert found == status
    assert '"message"' in body
    assert plain.token not in body


def test_wrong_tokens_are_slowed_down(plain: _Served) -> None:
    answers = [plain.says(Authorization="Bearer " + "x" * 43)[0] for _ in range(24)]
    assert answers[0] == 401
    assert answers[-1] == 429
    assert plain.says(Upgrade="websocket")[0] == 426


def test_what_is_no_http_is_hung_up_on(plain: _Served) -> None:
    with socket.create_connection(("localhost", plain.port), BOUND_S) as stranger:
        stranger.sendall(b"\x16\x03\x01 no words\r\n\r\n")
        with suppress(ConnectionResetError):  # it has not read all of that
            assert stranger.recv(4096) == b""
    assert plain.says(target="/")[0] == 404


def test_a_request_that_comes_byte_by_byte_is_hung_up_on_in_time(
    plain: _Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evaluator, "GREETING_S", 0.2)
    with socket.create_connection(("localhost", plain.port), BOUND_S) as slow:
        slow.sendall(b"GET /cuda:0 HTTP/1.1\r\nx: ")
        slow.settimeout(0.05)
        began, said = time.monotonic(), b"-"
        while said:
            assert time.monotonic() - began < 10
            with suppress(TimeoutError):
                slow.sendall(b"x")
                said = slow.recv(1)


def test_processes_of_this_user_need_no_token_on_loopback(
    tmp_path: Path, shared_caches: Path
) -> None:
    settings = Settings(home=share_caches(tmp_path / "here", shared_caches))
    for port in _serving(tmp_path, shared_caches, HttpOptions(port=0), None):
        served = _Served(port, "", settings, tmp_path)
        with closing(served.opened(f"http://127.0.0.1:{port}/cuda:0")) as device:
            assert device.facts == H100


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--host", "0.0.0.0"), "kopt gpu serve --host 0.0.0.0 --port 0 --token-file"),
        (("--host", "0.0.0.0", "--token-file", "TOKEN", "--allowed-host", "box"), "--tls-cert"),
        (("--tls-key", "TOKEN"), "--tls-key needs --tls-cert"),
        (("--tls-cert", "TOKEN"), "no certificate and key"),
    ],
)
def test_what_cannot_be_served_is_refused_at_the_start(
    kopt: Kopt, token: Path, words: tuple[str, ...], said: str
) -> None:
    named = [str(token) if word == "TOKEN" else word for word in words]
    ending = kopt("gpu", "serve", "--port", "0", *named)
    assert ending.code == ExitCode.USAGE
    assert said in ending.stderr
