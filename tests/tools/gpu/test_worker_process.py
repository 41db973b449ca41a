"""A worker process through the real sandbox: it answers, or is gone in bounded time."""

import os
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest

from kopt.config.errors import InfraError, SetupError
from kopt.config.settings import Settings
from kopt.kernels.plan import LaunchPlan
from kopt.kernels.problem import Problem
from kopt.tools.devices.timer import EmptySide
from kopt.tools.gpu.array_file import read_arrays, write_arrays
from kopt.tools.gpu.channel import Channel
from kopt.tools.gpu.messages import (
    Answer,
    CloseTimingRequest,
    CollectRequest,
    CopyCeilingRequest,
    ExecuteRequest,
    Failed,
    OpenTimingRequest,
    ReplayRequest,
    Request,
    StartAnswer,
    StartRequest,
    WarmRequest,
)
from kopt.tools.gpu.worker_policy import WorkerSpec
from kopt.tools.gpu.worker_process import WorkerEnd, WorkerProcess
from kopt.tools.sandbox.ladder import available_level
from support.scripted_engine import BROKEN_ENGINE, ENGINE

pytestmark = pytest.mark.slow  # a worker process each
HANG_LIMIT_S = 30.0
TESTS = Path(__file__).parents[2]

Open = Callable[[], WorkerProcess]


@pytest.fixture
def open_worker(settings: Settings) -> Iterator[Open]:
    with ExitStack() as stack:

        def open_one() -> WorkerProcess:
            worker = WorkerProcess(WorkerSpec(ENGINE), settings)
            stack.callback(worker.end)
            worker.start(HANG_LIMIT_S)
            return worker

        yield open_one


@pytest.fixture
def worker(open_worker: Open) -> WorkerProcess:
    return open_worker()


def act(worker: WorkerProcess, text: str, timeout_s: float = HANG_LIMIT_S) -> Answer | WorkerEnd:
    """Let the scripted engine do something."""
    return worker.ask(StartRequest(device_uuid=text), timeout_s)


def answers(worker: WorkerProcess, text: str = "still here") -> bool:
    """Whether the worker answers, and answers this question."""
    answer = act(worker, text)
    return isinstance(answer, StartAnswer) and answer.facts.uuid == text


def lifeline(folder: Path) -> int:
    """Return the reading end of the FIFO that a spinning engine holds as long as it lives."""
    os.mkfifo(folder / "alive")
    return os.open(folder / "alive", os.O_RDONLY | os.O_NONBLOCK)


def read_lifeline(descriptor: int) -> bytes:
    """Return `+` once the engine spins, nothing once all that held the FIFO has ended."""
    assert select.select([descriptor], [], [], HANG_LIMIT_S)[0], "the engine is still alive"
    return os.read(descriptor, 1)


def test_each_kind_of_request_reaches_its_method(
    worker: WorkerProcess, compile_problem: Problem
) -> None:
    workload = compile_problem.workloads[0]
    inputs = write_arrays(worker.folder, "inputs", {"x": np.zeros(3, np.float32)}.items())
    side = EmptySide(
        plan=LaunchPlan(workload=workload.name, axes=workload.axes, defines={}, launches=())
    )
    execute = ExecuteRequest(
        problem=compile_problem, workload=workload, side=side, inputs=inputs, poison=255
    )
    opening = OpenTimingRequest(
        problem=compile_problem,
        workload=workload,
        sides=(side,),
        inputs=inputs,
        poison=255,
        layout_seed=1,
        warmup_calls=5,
    )
    requests: list[Request] = [
        StartRequest(device_uuid="GPU-1"),
        execute,
        opening,
        ReplayRequest(sequence=(0, 1)),
        CollectRequest(),
        WarmRequest(side=1),
        CloseTimingRequest(),
        CopyCeilingRequest(),
    ]
    given = [worker.ask(request, HANG_LIMIT_S) for request in requests]
    assert [answer.kind for answer in given if not isinstance(answer, WorkerEnd)] == [
        "started",
        "executed",
        "timing_opened",
        "replayed",
        "collected",
        "warm_timed",
        "done",
        "copy_ceiling_measured",
    ]


def test_arrays_reach_the_worker_and_come_back(worker: WorkerProcess) -> None:
    file = write_arrays(worker.folder, "inputs", {"x": np.arange(5, dtype=np.float32)}.items())
    assert answers(worker, "double inputs")
    doubled = file.model_copy(update={"file": "doubled"})
    found = read_arrays(worker.folder, doubled, {"x": "float32"})
    assert found["x"].tolist() == [0, 2, 4, 6, 8]


def test_worker_names_the_level_that_it_runs_at(worker: WorkerProcess, settings: Settings) -> None:
    assert worker.level == available_level(settings)


def test_spinning_worker_and_its_children_are_gone_when_ask_returns(open_worker: Open) -> None:
    worker = open_worker()
    alive = lifeline(worker.folder)
    end = act(worker, "spin-with-child", timeout_s=1.0)
    assert isinstance(end, WorkerEnd)
    assert end.reason == "timeout"
    assert os.read(alive, 2) in (b"+", b"")
    assert os.read(alive, 1) == b""  # would raise BlockingIOError while a holder lives
    os.close(alive)
    assert not worker.is_alive
    assert answers(open_worker())


def test_question_to_a_worker_that_has_ended_is_answered_at_once(worker: WorkerProcess) -> None:
    act(worker, "exit 0")
    end = act(worker, "hello", timeout_s=float("inf"))
    assert isinstance(end, WorkerEnd)


@pytest.mark.parametrize(
    ("text", "detail"),
    [
        ("exit 7", "status 7: leaving"),
        ("segfault", f"signal {int(signal.SIGSEGV)}"),
        ("garbage 100", "without the worker's token"),
        ("garbage 1000000", "without the worker's token"),
        ("forge", "without the worker's token"),
        ("nonsense", "something else"),
    ],
)
def test_worker_that_dies_or_talks_nonsense_is_an_end_with_its_reason(
    worker: WorkerProcess, text: str, detail: str
) -> None:
    end = act(worker, text)
    assert isinstance(end, WorkerEnd)
    assert end.reason == "died"
    assert detail in end.detail
    assert len(end.detail.splitlines()) == 1
    assert not worker.is_alive


def test_worker_that_hangs_up_and_lives_on_is_ended(worker: WorkerProcess) -> None:
    alive = lifeline(worker.folder)
    assert isinstance(act(worker, "close"), WorkerEnd)
    assert read_lifeline(alive) == b"+"
    assert os.read(alive, 1) == b""
    os.close(alive)
    assert not worker.is_alive


def test_flood_of_output_neither_blocks_nor_reaches_an_answer(worker: WorkerProcess) -> None:
    assert answers(worker, "flood")
    assert answers(worker)


@pytest.mark.parametrize(
    ("text", "message"), [("raise boom", "ValueError: boom"), ("refuse no driver", "no driver")]
)
def test_error_inside_the_engine_is_one_line_and_the_worker_goes_on(
    worker: WorkerProcess, text: str, message: str
) -> None:
    assert act(worker, text) == Failed(message=message)
    assert answers(worker)


def test_engine_that_cannot_be_made_is_a_setup_error_with_its_words(settings: Settings) -> None:
    worker = WorkerProcess(WorkerSpec(BROKEN_ENGINE), settings)
    with pytest.raises(SetupError, match="this machine has no such library"):
        worker.start(HANG_LIMIT_S)
    assert not worker.folder.exists()


def test_worker_that_does_not_report_in_time_is_an_infra_error(settings: Settings) -> None:
    worker = WorkerProcess(WorkerSpec(ENGINE), settings)
    with pytest.raises(InfraError, match="did not start"):
        worker.start(0.0)
    assert not worker.is_alive


def test_module_to_preload_that_is_missing_is_no_error(settings: Settings) -> None:
    worker = WorkerProcess(WorkerSpec(ENGINE, preload=("no_such_library", "colorsys")), settings)
    worker.start(HANG_LIMIT_S)
    assert answers(worker, "imported colorsys")
    worker.end()


def test_two_workers_do_not_disturb_each_other(open_worker: Open) -> None:
    spinning, other = open_worker(), open_worker()
    alive = lifeline(spinning.folder)
    with ThreadPoolExecutor(1) as pool:
        lost = pool.submit(act, spinning, "spin")
        assert read_lifeline(alive) == b"+"
        assert all(answers(other, f"GPU-{turn}") for turn in range(20))
        spinning.end()
        end = lost.result(HANG_LIMIT_S)
    assert end == WorkerEnd("died", "it was ended")
    assert os.read(alive, 1) == b""
    os.close(alive)
    assert answers(other)


def test_questions_from_several_threads_get_their_own_answers(worker: WorkerProcess) -> None:
    with ThreadPoolExecutor(4) as pool:
        asked = [pool.submit(answers, worker, f"GPU-{turn}") for turn in range(100)]
        assert all(future.result(HANG_LIMIT_S) for future in asked)


def test_folder_is_gone_after_the_end_and_ending_twice_is_harmless(worker: WorkerProcess) -> None:
    assert worker.folder.is_dir()
    worker.end()
    worker.end()
    assert not worker.folder.exists()


def test_interrupted_question_ends_the_worker(
    worker: WorkerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> bytes:
        raise KeyboardInterrupt

    monkeypatch.setattr(Channel, "receive", interrupt)
    with pytest.raises(KeyboardInterrupt):
        act(worker, "hello")
    assert not worker.is_alive


def test_nothing_survives_the_killing_of_kopt(settings: Settings) -> None:
    script = (
        f"import sys; sys.path.insert(0, {str(TESTS)!r})\n"
        "from pathlib import Path; from kopt.config.settings import Settings\n"
        "from kopt.tools.gpu.messages import StartRequest\n"
        "from kopt.tools.gpu.worker_policy import WorkerSpec\n"
        "from kopt.tools.gpu.worker_process import WorkerProcess\n"
        f"settings = Settings(Path({str(settings.home)!r}))\n"
        f"worker = WorkerProcess(WorkerSpec({ENGINE!r}), settings); worker.start()\n"
        "print(worker.folder, flush=True); sys.stdin.readline()\n"
        "worker.ask(StartRequest(device_uuid='spin-with-child'), 600)\n"
    )
    command = [sys.executable, "-c", script]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdin and process.stdout
        folder = Path(process.stdout.readline().strip())
        assert folder.is_absolute()  # else it did not start, and stderr says why
        alive = lifeline(folder)
        process.stdin.write("go\n")
        process.stdin.flush()
        assert read_lifeline(alive) == b"+"
        process.send_signal(signal.SIGKILL)
        process.wait(HANG_LIMIT_S)
    assert read_lifeline(alive) == b""
    os.close(alive)
    shutil.rmtree(folder)  # what the next worker would sweep
