"""Run ids and folders: `KOPT_HOME/runs/run-<UTC date>-<time>-<milliseconds>`."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from kopt.config.errors import SetupError, ToolError
from kopt.config.folder_owner import may_see
from kopt.config.settings import Settings

from .store import FILE_NAME

_PREFIX = "run-"


def find_run(text: str, settings: Settings) -> Path:
    """Return the folder of the run that `text` names: an id, or an unmistakable part of one.

    Raises:
        ToolError: No run or several runs match; the message shows what there is.
    """
    return find_folder(text, run_folders(settings), ("run", "runs"))


def check_run_id(run_id: str, owner: str, settings: Settings) -> None:
    """Return if `run_id` is the whole id of a run that `owner` may see.

    Raises:
        ToolError: It is not; no other run is named, nor told from one that does not exist.
    """
    known = (folder for folder in run_folders(settings) if folder.name == run_id)
    if not any(may_see(owner, folder) for folder in known):
        raise ToolError(f"no run matches {run_id[:80]!r}: give the whole id, as beam_step gave it")


def find_folder(text: str, folders: Sequence[Path], nouns: tuple[str, str]) -> Path:
    """Return the one of `folders` whose name is `text` or has it as an unmistakable part.

    Raises:
        ToolError: None or several match; the message shows what there is, in words of `nouns`.
    """
    exact = [folder for folder in folders if folder.name == text]
    matches = exact or [folder for folder in folders if text and text in folder.name]
    if len(matches) == 1:
        return matches[0]
    names = [folder.name for folder in (matches or folders)[:5]]
    shown = ", ".join(names) or f"none yet; kopt {nouns[0]} begins one"
    what = f"several {nouns[1]} match" if matches else f"no {nouns[0]} matches"
    raise ToolError(f"{what} {text!r}; newest first: {shown}")


def run_folders(settings: Settings) -> list[Path]:
    """Return the folders of all runs, newest first."""
    found = [file.parent for file in settings.runs.glob(f"{_PREFIX}*/{FILE_NAME}")]
    return sorted(found, key=lambda folder: folder.name, reverse=True)


def new_run_folder(runs: Path, prefix: str = _PREFIX) -> Path:
    """Create the folder of a run, whose id sorts by time; mkdir keeps two processes apart.

    With another prefix it is that of something else that is named by its time.

    Raises:
        SetupError: It cannot be created.
    """
    for _ in range(1000):
        now = datetime.now(UTC)
        folder = runs / f"{prefix}{now:%Y%m%d-%H%M%S}-{now.microsecond // 1000:03d}"
        try:
            folder.mkdir(mode=0o700)
        except FileExistsError:
            continue
        except OSError as error:
            raise SetupError(f"cannot create {folder}: {error.strerror}") from error
        return folder
    raise SetupError(f"cannot find a free name in {runs}: does the clock stand still?")
