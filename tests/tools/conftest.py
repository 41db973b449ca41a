"""One home for all tests of a process that compile."""

from pathlib import Path

import pytest

from kopt.config.settings import Settings
from kopt.kernels.problem import Problem
from kopt.tools.cuda.compile_job import CompileContext
from kopt.tools.cuda.toolchain import FoundToolchain, find_toolchain
from support.shared_caches import share_caches
from support.tiny_problem import tiny_problem


@pytest.fixture(scope="session")
def settings(tmp_path_factory: pytest.TempPathFactory, shared_caches: Path) -> Settings:
    """Settings with a home of this test process and the pip toolkit."""
    return Settings(
        home=share_caches(tmp_path_factory.mktemp("kopt") / "home", shared_caches), jobs=2
    )


@pytest.fixture(scope="session")
def toolchain(settings: Settings) -> FoundToolchain:
    """The toolkit that `make test` installs."""
    return find_toolchain(settings)


@pytest.fixture(scope="session")
def compile_problem(tmp_path_factory: pytest.TempPathFactory) -> Problem:
    """The tiny problem, written once."""
    return tiny_problem(tmp_path_factory.mktemp("problem"))


@pytest.fixture
def nvcc(settings: Settings, toolchain: FoundToolchain) -> CompileContext:
    """How nvcc compiles."""
    return CompileContext("nvcc", toolchain, settings)


@pytest.fixture
def nvrtc(settings: Settings, toolchain: FoundToolchain) -> CompileContext:
    """How the fast path compiles."""
    return CompileContext("nvrtc", toolchain, settings)
