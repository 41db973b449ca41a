"""kopt makes CUDA kernels faster and proves it.

`import kopt` loads nothing else: each name below comes from its module when it is first used.
docs/python.md shows what to do with them.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .config.errors import InfraError, KoptError, SetupError, ToolError
    from .config.search_settings import SearchSettings
    from .config.settings import Settings, settings_from_environment
    from .kernels.bench_result import BenchResult
    from .kernels.candidate import Candidate, read_candidate
    from .kernels.case import Case
    from .kernels.check_result import CheckResult
    from .kernels.compile_result import CompileResult
    from .kernels.problem import Problem, Workload
    from .kernels.problem_loader import find_kernel, load_problem, load_problems
    from .kernels.profile_result import ProfileResult
    from .kernels.status import Status, Verdict
    from .search.reports.run_report import RunReport
    from .server.work.api import bench, case, check, problem_from, profile, run
    from .server.work.api import compile_case as compile

__version__ = "0.1.0"

__all__ = [
    "BenchResult",
    "Candidate",
    "Case",
    "CheckResult",
    "CompileResult",
    "InfraError",
    "KoptError",
    "Problem",
    "ProfileResult",
    "RunReport",
    "SearchSettings",
    "Settings",
    "SetupError",
    "Status",
    "ToolError",
    "Verdict",
    "Workload",
    "bench",
    "case",
    "check",
    "compile",
    "find_kernel",
    "load_problem",
    "load_problems",
    "problem_from",
    "profile",
    "read_candidate",
    "run",
    "settings_from_environment",
]

_MODULES = {
    "config.errors": ("InfraError", "KoptError", "SetupError", "ToolError"),
    "config.search_settings": ("SearchSettings",),
    "config.settings": ("Settings", "settings_from_environment"),
    "kernels.bench_result": ("BenchResult",),
    "kernels.candidate": ("Candidate", "read_candidate"),
    "kernels.case": ("Case",),
    "kernels.check_result": ("CheckResult",),
    "kernels.compile_result": ("CompileResult",),
    "kernels.problem": ("Problem", "Workload"),
    "kernels.problem_loader": ("find_kernel", "load_problem", "load_problems"),
    "kernels.profile_result": ("ProfileResult",),
    "kernels.status": ("Status", "Verdict"),
    "search.reports.run_report": ("RunReport",),
    "server.work.api": ("bench", "case", "check", "compile", "problem_from", "profile", "run"),
}
_RENAMED = {"compile": "compile_case"}  # inside kopt, `compile` is Python's


if not TYPE_CHECKING:  # a type checker would take every name for one of ours

    def __getattr__(name: str) -> object:
        """Return a public name from its module, which is imported now (PEP 562)."""
        for module, names in _MODULES.items():
            if name in names:
                return getattr(import_module(f"kopt.{module}"), _RENAMED.get(name, name))
        raise AttributeError(f"module 'kopt' has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return the public names."""
    return [*__all__, "__version__"]
