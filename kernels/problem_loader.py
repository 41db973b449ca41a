"""Finding problems: the packaged ones, a user's folder, and one kernel by its id."""

from collections.abc import Collection, Mapping
from functools import cache, lru_cache
from importlib.resources import files
from pathlib import Path

from kopt.config.errors import ToolError
from kopt.config.near_matches import close_names, did_you_mean
from kopt.config.settings import WORKSPACE_PROBLEMS

from .problem import Problem, Workload
from .problem_scope import ProblemScope
from .strict_yaml import YamlError, load_yaml
from .yaml_records import read_record

FILE_NAME = "problem.yaml"
ORACLE_NAME = "oracle.py"
MAX_FILE_BYTES = 1 << 20
_MISTAKES_SHOWN = 5
_NEAR_SHOWN = 5


def load_problem(folder: Path) -> Problem:
    """Return the problem in `folder`.

    Raises:
        ToolError: No problem.yaml or no oracle.py, or mistakes, each with file, line and field.
    """
    path = folder / FILE_NAME
    try:
        root = load_yaml(_read_text(path))
    except YamlError as error:
        raise ToolError(f"{path}:{error.line}: {error}") from error
    problem = read_record(Problem, root, "problem", ProblemScope(), {"folder": folder})
    if isinstance(problem, Problem):
        return _whole(problem, path)
    lines = [f"{path}:{found.line}: {found.message}" for found in problem[:_MISTAKES_SHOWN]]
    if len(problem) > len(lines):
        lines.append(f"and {len(problem) - len(lines)} more")
    raise ToolError("\n".join(lines))


def _whole(problem: Problem, path: Path) -> Problem:
    """Return the problem if the rest of its folder is there too.

    Raises:
        ToolError: It has no oracle.py, or another name than its folder.
    """
    folder = problem.folder
    if problem.name != folder.name:
        message = f"problem: name: {problem.name!r} differs from its folder {folder.name!r}"
        raise ToolError(f"{path}:1: {message}")
    if not (folder / ORACLE_NAME).is_file():
        raise ToolError(
            f"{folder / ORACLE_NAME} is missing: every problem needs its oracle, which says what is"
            " right (docs/problems.md)"
        )
    return problem


def load_problems(extra: Path | None = None) -> dict[str, Problem]:
    """Return every problem by name: the packaged ones, then those of the folder `extra`.

    Args:
        extra: A folder of problem folders, or one problem folder.

    Raises:
        ToolError: `extra` holds no problem, a problem has mistakes, or a name is taken.
    """
    problems = {folder.name: _load(folder) for folder in _problem_folders(extra)}
    _refuse_ambiguous(problems)
    return problems


def readable_problems(extra: Path | None = None) -> tuple[dict[str, Problem], tuple[str, ...]]:
    """Return every problem that has no mistake, by name, and what is wrong with each other one.

    Args:
        extra: As in `load_problems`.
    """
    problems = load_problems()
    mistakes: list[str] = []
    try:
        own = [] if extra is None else _own_folders(extra)
    except ToolError as error:
        return problems, (str(error),)
    for folder in own:
        try:
            _refuse_taken(folder, problems.keys())
            with_it = {**problems, folder.name: load_problem(folder)}
            _refuse_ambiguous(with_it)
        except ToolError as error:
            mistakes.append(str(error))
        else:
            problems = with_it
    return problems, tuple(mistakes)


def _refuse_ambiguous(problems: Mapping[str, Problem]) -> None:
    """Refuse a kernel id that two kernels have, or a kernel and a problem.

    Raises:
        ToolError: Names both, and what to do.
    """
    owners: dict[str, Problem] = {}
    for problem in problems.values():
        for kernel in problem.kernel_ids:
            other = owners.setdefault(kernel, problem)
            if other is not problem or kernel in problems:
                other = problems.get(kernel, other)
                raise ToolError(
                    f"{problem.folder / FILE_NAME}: the kernel id {kernel!r} is also one of"
                    f" {other.folder}; give its workload another name"
                )


def find_kernel(kernel_id: str, extra: Path | None = None) -> tuple[Problem, Workload]:
    """Return the problem and the workload of a kernel id `<problem>_<workload>`.

    Only problems whose name begins the id are read, unless none of them has the kernel.

    Raises:
        ToolError: No kernel has this id, and the message has near matches; or two have it.
    """
    begun = {
        folder.name: _load(folder)
        for folder in _problem_folders(extra)
        if f"{kernel_id}_".startswith(f"{folder.name}_")
    }
    _refuse_ambiguous(begun)
    for problem in begun.values():
        for workload in problem.workloads:
            if problem.kernel_id(workload) == kernel_id:
                return problem, workload
    problems = load_problems(extra)
    if kernel_id in problems:
        workloads = ", ".join(problems[kernel_id].kernel_ids)
        raise ToolError(f"{kernel_id!r} is a problem; its kernel ids are {workloads}")
    kernels = [known for problem in problems.values() for known in problem.kernel_ids]
    near = _near_kernels(kernel_id, kernels)
    raise ToolError(f"no kernel is called {kernel_id[:120]!r}; {near}{_unread_folder(extra)}")


def _unread_folder(extra: Path | None) -> str:
    """Return what reads the folder of problems that lies here, which no option names; else ""."""
    if extra is not None or not Path(WORKSPACE_PROBLEMS).is_dir():
        return ""
    return f"; those of {WORKSPACE_PROBLEMS}/ are known with --problems {WORKSPACE_PROBLEMS}"


def _near_kernels(kernel_id: str, kernels: Collection[str]) -> str:
    """Return the ids that look like `kernel_id`, else those that contain it, else their number."""
    containing = [name for name in sorted(kernels) if kernel_id and kernel_id in name]
    close = close_names(kernel_id.lower(), sorted(kernels)) or containing[:_NEAR_SHOWN]
    if close:
        return did_you_mean(close)
    return f"'kopt list' shows the {len(kernels)} that there are"


def own_folder(problem: Problem, extra: Path | None) -> Path | None:
    """Return the folder of problems that `problem` was found in; None for a packaged one.

    Args:
        problem: One that `find_kernel` found.
        extra: The user's folder that it was looked for in.
    """
    is_own = extra is not None and problem.folder.parent != _packaged_root()
    return extra.absolute() if extra is not None and is_own else None


def _load(folder: Path) -> Problem:
    """Return the problem in `folder`; packaged ones are read once a process."""
    return _load_packaged(folder) if folder.parent == _packaged_root() else load_problem(folder)


_load_packaged = lru_cache(load_problem)


@cache
def _packaged_root() -> Path:
    return Path(str(files("kopt.kernels").joinpath("problems")))


def _problem_folders(extra: Path | None) -> list[Path]:
    """Return the packaged folders, then the user's; each has the name of its problem."""
    packaged = _folders_below(_packaged_root())
    own = [] if extra is None else _own_folders(extra)
    for folder in own:
        _refuse_taken(folder, {one.name for one in packaged})
    return [*packaged, *own]


def _refuse_taken(folder: Path, taken: Collection[str]) -> None:
    """Refuse a problem of the user's that is called like a packaged one.

    Raises:
        ToolError: Names both, and what to do.
    """
    if folder.name in taken:
        raise ToolError(
            f"{folder}: a problem called {folder.name!r} exists already in"
            f" {_packaged_root() / folder.name}; choose another name"
        )


def _own_folders(extra: Path) -> list[Path]:
    try:
        if (extra / FILE_NAME).is_file():
            return [extra.resolve()]
        folders = _folders_below(extra.resolve()) if extra.is_dir() else None
    except OSError as error:
        raise ToolError(f"cannot read {error.filename}: {error.strerror or error}") from error
    if folders or extra.name == WORKSPACE_PROBLEMS:
        return folders or []
    if folders is None:
        raise ToolError(f"{extra} is not a folder of problems")
    raise ToolError(f"{extra} has no folder with a {FILE_NAME}")


def _folders_below(root: Path) -> list[Path]:
    return sorted(folder for folder in root.iterdir() if (folder / FILE_NAME).is_file())


def _read_text(path: Path) -> str:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ToolError(f"cannot read {path}: {error.strerror or error}") from error
    if len(data) > MAX_FILE_BYTES:
        raise ToolError(f"{path} has {len(data)} bytes; at most {MAX_FILE_BYTES} are allowed")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise ToolError(f"{path} is not UTF-8 text (byte {error.start})") from error
