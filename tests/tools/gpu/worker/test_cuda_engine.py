"""The engine keeps its order: a context first, one timing session at a time."""

from pathlib import Path
from typing import Any

import pytest

from kopt.config.errors import InfraError
from kopt.tools.gpu.messages import (
    CloseTimingRequest,
    CopyCeilingRequest,
    Done,
    ReplayRequest,
    Request,
    StartRequest,
)
from kopt.tools.gpu.worker.__main__ import Engine
from kopt.tools.gpu.worker.cuda_engine import CudaEngine
from support.host_cuda import GPU_UUID, SM_COUNT, HostCuda


@pytest.fixture
def engine(host_cuda: HostCuda) -> Engine:
    """An engine on the stand-in, without a context."""
    del host_cuda
    return CudaEngine()


def _answer(engine: Engine, request: Request) -> Any:
    return engine.answer(request, Path("/nonexistent"))


def test_the_context_is_on_the_device_with_the_uuid(engine: Engine) -> None:
    facts = _answer(engine, StartRequest(device_uuid=GPU_UUID)).facts
    assert (facts.uuid, facts.index, facts.sm_count) == (GPU_UUID, 1, SM_COUNT)


def test_persisting_l2_is_off_once_there_is_a_context(engine: Engine, host_cuda: HostCuda) -> None:
    _answer(engine, StartRequest(device_uuid=GPU_UUID))
    assert host_cuda.limits == {"CU_LIMIT_PERSISTING_L2_CACHE_SIZE": 0}


def test_an_unknown_device_is_named_beside_the_visible_ones(engine: Engine) -> None:
    with pytest.raises(InfraError, match=f"no GPU GPU-unknown; it sees .*{GPU_UUID}"):
        _answer(engine, StartRequest(device_uuid="GPU-unknown"))


def test_nothing_runs_before_there_is_a_context(engine: Engine) -> None:
    with pytest.raises(InfraError, match="no context yet"):
        _answer(engine, CopyCeilingRequest())


def test_a_worker_has_one_context(engine: Engine) -> None:
    _answer(engine, StartRequest(device_uuid=GPU_UUID))
    with pytest.raises(InfraError, match="a context already"):
        _answer(engine, StartRequest(device_uuid=GPU_UUID))


def test_a_replay_needs_a_session_and_closing_none_is_fine(engine: Engine) -> None:
    assert _answer(engine, CloseTimingRequest()) == Done()
    with pytest.raises(InfraError, match="no timing session"):
        _answer(engine, ReplayRequest(sequence=(0,)))
