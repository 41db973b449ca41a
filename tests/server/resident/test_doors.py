"""Where evaluators listen, and what callers meet there that is no evaluator at work."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

import pytest

from kopt.config.callbacks import ignore
from kopt.config.errors import SetupError
from kopt.config.pollable_event import PollableEvent
from kopt.config.settings import Settings
from kopt.server.jobs.process_tree import session_tree
from kopt.server.protocol.web.listen_address import HttpOptions, open_doorway
from kopt.server.resident import evaluator
from kopt.server.resident.evaluator import ResidentEvaluator
from kopt.server.resident.local_door import LocalDoor
from kopt.server.resident.shared_gpu import SharedGpu
from kopt.server.resident.web_door import WebDoor
from kopt.tools.remote import link
from kopt.tools.remote.wire import FrameWriter
from kopt.tools.resident import greeting, starting
from kopt.tools.resident.control import ask_evaluators
from kopt.tools.resident.open_resident import open_resident, retire_idle
from kopt.tools.resident.place import place_of
from support.far_twin import workers_opener
from support.shared_caches import share_caches
from support.stdio_process import wait_until_gone

BOUND_S = 60.0


def test_another_environment_has_another_evaluator(
    resident_settings: Settings,
) -> None:
    other = replace(resident_settings, library_environment=(("FLASHINFER_CACHE", "/elsewhere"),))
    places = [place_of("cuda:0", one) for one in (resident_settings, other)]
    assert places[0] != places[1]
    assert [one.device for one in places] == ["cuda:0", "cuda:0"]


def test_who_has_an_evaluator_loads_nothing_that_starts_workers() -> None:
    unneeded = ("kopt.tools.gpu.worker_pool", "kopt.tools.remote.ssh_client", "h11", "elftools")
    code = (
        "import sys; import kopt.tools.resident.open_resident\n"
        f"print([name for name in {unneeded} if name in sys.modules])"
    )
    words = [sys.executable, "-P", "-c", code]
    assert subprocess.run(words, capture_output=True, text=True, check=True).stdout == "[]\n"


@pytest.mark.slow  # an evaluator is a Python that loads kopt
def test_an_evaluator_that_does_not_answer_is_named(
    resident_settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = open_resident("cuda:0", resident_settings, ignore, has_spare=True)
    assert opened is not None
    with closing(opened):
        (only,) = ask_evaluators(resident_settings, "status").evaluators
    pid = only.pid
    os.kill(pid, signal.SIGSTOP)
    try:
        with monkeypatch.context() as hasty:
            hasty.setattr(greeting, "ANSWER_S", 0.2)
            with pytest.raises(SetupError, match=f"kill -9 {pid}"):
                open_resident("cuda:0", resident_settings, ignore, has_spare=True)
            (unheard,) = ask_evaluators(resident_settings, "status").unheard
            assert f"process {pid}" in unheard
    finally:
        os.kill(pid, signal.SIGCONT)


@pytest.mark.slow  # an evaluator is a Python that loads kopt
def test_arrays_of_this_machine_go_whole(
    resident_settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    remembered: list[int] = []

    def noted(target: BinaryIO, remembered_bytes: int) -> FrameWriter:
        remembered.append(remembered_bytes)
        return FrameWriter(target, remembered_bytes)

    monkeypatch.setattr(link, "FrameWriter", noted)
    opened = open_resident("cuda:0", resident_settings, ignore, has_spare=True)
    assert opened is not None
    opened.close()
    assert remembered == [0]


@pytest.mark.slow  # an evaluator is a Python that loads kopt
def test_whoever_starts_an_evaluator_is_told_how_it_ends(resident_settings: Settings) -> None:
    told: list[str] = []
    for _ in range(2):
        opened = open_resident("cuda:0", resident_settings, told.append, has_spare=True)
        assert opened is not None
        opened.close()
    (line,) = told
    assert "it ends after 60 s" in line
    assert "KOPT_GPU_IDLE_S=0" in line


@pytest.mark.slow  # an evaluator is a Python that loads kopt
def test_a_call_whose_evaluator_cannot_start_says_why_and_does_without(
    resident_settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(starting, "PROGRAM", ("-c", "raise SystemExit('no room for this one')"))
    told: list[str] = []
    assert open_resident("cuda:0", resident_settings, told.append, has_spare=True) is None
    (line,) = told
    assert "no room for this one" in line
    assert line.endswith("this call has workers of its own")


def test_a_call_whose_evaluator_has_no_safe_place_says_why_and_does_without(
    resident_settings: Settings,
) -> None:
    folder = resident_settings.home / "gpu"
    folder.mkdir()
    folder.chmod(0o777)
    told: list[str] = []
    assert open_resident("cuda:0", resident_settings, told.append, has_spare=True) is None
    (line,) = told
    assert line.endswith("this call has workers of its own")


@pytest.mark.slow  # an evaluator is a Python that loads kopt
def test_an_evaluator_ends_for_what_wants_the_gpu_alone_unless_it_has_callers(
    resident_settings: Settings,
) -> None:
    opened = open_resident("cuda:0", resident_settings, ignore, has_spare=True)
    assert opened is not None
    retire_idle("cuda:0", resident_settings)
    (one,) = ask_evaluators(resident_settings, "status").evaluators
    assert not one.is_stopping
    tree = session_tree(one.pid)
    opened.close()
    until = time.monotonic() + BOUND_S
    while ask_evaluators(resident_settings, "status").evaluators[0].callers:
        assert time.monotonic() < until
    retire_idle("cuda:0", resident_settings)
    wait_until_gone(tree)


def test_whoever_crowds_the_port_leaves_room_at_the_socket_of_this_machine(
    tmp_path: Path, shared_caches: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evaluator, "MOST_CONNECTIONS", 1)
    settings = Settings(home=share_caches(tmp_path / "there", shared_caches))
    doorway = open_doorway(HttpOptions(port=0))
    address = doorway.listener.getsockname()
    doors = (LocalDoor(place_of("cuda:0", settings)), WebDoor(doorway, "cuda:0", None))
    gpu = SharedGpu("cuda:0", workers_opener(settings, PollableEvent()))
    with ResidentEvaluator(doors, settings, gpu, None) as serving:
        thread = threading.Thread(target=serving.serve)
        thread.start()
        with socket.create_connection(address), socket.create_connection(address) as refused:
            refused.settimeout(60.0)
            assert refused.recv(1) == b""
            assert len(ask_evaluators(settings, "end").evaluators) == 1
        thread.join(60.0)
        assert not thread.is_alive()
