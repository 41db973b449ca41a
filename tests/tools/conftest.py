"""One home for all tests of a process that compile: its launcher is built once."""

import pytest

from kopt.config.settings import Settings
from kopt.kernels.problem import Problem
from kopt.tools.cuda.toolchain import FoundToolchain, find_toolchain
from support.tiny_problem import tiny_problem


@pytest.fixture(scope="session")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """Settings with a home of this test process and the pip toolkit."""
    return Settings(home=tmp_path_factory.mktemp("home"), jobs=2)


@pytest.fixture(scope="session")
def toolchain(settings: Settings) -> FoundToolchain:
    """The toolkit that `make test` installs."""
    return find_toolchain(settings)


@pytest.fixture(scope="session")
def compile_problem(tmp_path_factory: pytest.TempPathFactory) -> Problem:
    """The tiny problem, written once."""
    return tiny_problem(tmp_path_factory.mktemp("problem"))
