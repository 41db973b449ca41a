"""The files of a problem that a receipt binds: what its oracle computes from, and its baselines.

A receipt lists each file with its SHA-256. Kernels, text for exports and documents are left out:
nothing that a check computes depends on them.
"""

from collections.abc import Iterator, Mapping

from kopt.kernels.problem import Problem
from kopt.tools.check.oracle_parts import file_digest, oracle_files

DECISIVE_FILES = ("problem.yaml", "oracle.py")
"""What makes a problem this problem."""
BASELINE_FILES = ("reference.cu", "baseline.py")
"""What a candidate is compared with."""
GRAPH_FILE = "graph.json"
"""What an imported problem has and no other."""
_NOT_COMPUTED = frozenset(
    {
        *(*DECISIVE_FILES, *BASELINE_FILES),
        *("torch_reference.py", "torch_definition.py", "definition.json"),
    }
)


def problem_files(problem: Problem) -> dict[str, str]:
    """Return the SHA-256 of the files that decide what a receipt of `problem` means."""
    folder = problem.folder
    names = (*DECISIVE_FILES, *BASELINE_FILES, *_others(problem))
    return {name: file_digest(folder / name) for name in names if (folder / name).is_file()}


def _others(problem: Problem) -> Iterator[str]:
    """Yield what else an oracle may read: the graph and arrays of an import, modules, tables."""
    for path in oracle_files(problem.folder):
        name = path.relative_to(problem.folder).as_posix()
        is_hidden = any(part.startswith(".") for part in name.split("/"))
        if name not in _NOT_COMPUTED and path.suffix != ".md" and not is_hidden:
            yield name


def changed_files(problem: Problem, listed: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield each file that is another one than that of a receipt, with the rest of a sentence.

    Args:
        problem: The problem as it is now.
        listed: `problem_files` of the receipt. An early receipt of a problem that was written by
            hand lists fewer files than today's: what it does not list may be anything. An imported
            oracle takes whichever array fits, so that there a new file is a change, too.
    """
    now = problem_files(problem)
    names = [*DECISIVE_FILES, *BASELINE_FILES, *listed]
    if GRAPH_FILE in now:
        names += now
    for name in dict.fromkeys(names):
        if now.get(name) == listed.get(name):
            continue
        if name not in now:
            yield name, "is missing, and the receipt was made with it"
        elif name not in listed:
            yield name, "is none of the files that the receipt was made with"
        else:
            yield name, "has changed since the receipt was made"
