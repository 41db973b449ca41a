"""What the user chose for the library index, kept from one build to the next.

The known libraries in the index say themselves that they were chosen. Repositories and folders
cannot: their addresses are kept here, beside the index.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from kopt.config.errors import SetupError, ToolError
from kopt.config.files import ensure_folder, write_atomically
from kopt.config.locks import file_lock
from kopt.config.settings import Settings
from kopt.kernels.record import Record
from kopt.tools.docs.build_records import WAITING, BuildResult, OnProgress
from kopt.tools.docs.indexing.index_meta import library_folder, library_index_path, read_meta
from kopt.tools.docs.library.git_sources import git_choice
from kopt.tools.docs.library.harvest import FileSelection, FolderChoice
from kopt.tools.docs.library.packages import installable
from kopt.tools.docs.library.pins import default_keys, known_libraries

from .assembly import assemble
from .build import build_library
from .parts import Parts

_FILE_NAME = "choices.json"


class Choices(Record):
    """Repositories and folders in the index, and libraries that are to stay out of it."""

    schema_: Literal["kopt.docs-choices/1"] = Field(default="kopt.docs-choices/1", alias="schema")
    git: tuple[str, ...] = ()
    """Repositories as the user named them."""
    folders: tuple[FolderChoice, ...] = ()
    forgotten: tuple[str, ...] = ()
    """Known libraries that no build takes by default, until one names them again."""

    def without(self, key: str) -> "Choices":
        """Return all but the source `key`, which is forgotten."""
        is_known = key in known_libraries() and key not in self.forgotten
        return Choices(
            git=tuple(text for text in self.git if git_choice(text).key != key),
            folders=tuple(folder for folder in self.folders if folder.name != key),
            forgotten=(*self.forgotten, key) if is_known else self.forgotten,
        )

    def among(self, keys: Sequence[str]) -> "Choices":
        """Return those whose source is among `keys`."""
        return Choices(
            git=tuple(text for text in self.git if git_choice(text).key in keys),
            folders=tuple(folder for folder in self.folders if folder.name in keys),
            forgotten=tuple(key for key in self.forgotten if key not in keys),
        )


def choices_folder(settings: Settings) -> Path:
    """Return the folder of the choices, and of the lock under which they change."""
    return library_folder(settings) / "choices"


def read_choices(settings: Settings) -> Choices:
    """Return what was chosen; nothing before the first build.

    Raises:
        SetupError: The file is damaged or of a newer kopt; the message names it.
    """
    path = choices_folder(settings) / _FILE_NAME
    try:
        return Choices.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return Choices()
    except (OSError, ValidationError) as error:
        raise SetupError(
            f"{path} cannot be read: delete it, and name your folders and repositories again"
        ) from error


def write_choices(choices: Choices, settings: Settings) -> None:
    """Keep `choices`, all at once."""
    folder = ensure_folder(choices_folder(settings))
    # Mode 0600: an address may carry a password.
    text = choices.model_dump_json(by_alias=True, indent=1)
    write_atomically(folder / _FILE_NAME, text, mode=0o600)


def whole_selection(asked: FileSelection, before: Choices, built: Sequence[str]) -> FileSelection:
    """Return what a build is to hold: what is asked for, what was chosen before, what is built.

    Without libraries `asked` stands for the default ones too, unless it adds repositories or
    folders to an index.

    Raises:
        ToolError: That is nothing: every default library was forgotten.
    """
    git = tuple(dict.fromkeys((*before.git, *asked.git)))
    from_git = {git_choice(text).key for text in git}
    stay = [key for key in built if key in known_libraries() and key not in from_git]
    is_addition = bool(built) and bool(asked.git or asked.folders)
    default = tuple(installable()) if asked.installed else default_keys()
    remembered = tuple(key for key in default if key not in before.forgotten)
    named = {*(asked.sources or (() if is_addition else remembered)), *stay}
    folders = {one.name: one for one in before.folders}
    folders |= {
        one.name: replace(one, path=one.path.expanduser().absolute()) for one in asked.folders
    }
    if not (named or git or folders):
        raise ToolError(
            "nothing to build: every default library was forgotten; name one with --source"
        )
    unknown = sorted(named - known_libraries().keys())  # which the build refuses
    return replace(
        asked,
        sources=(*(key for key in known_libraries() if key in named), *unknown),
        git=git,
        folders=tuple(folders.values()),
    )


def build_chosen(asked: FileSelection, settings: Settings, on_progress: OnProgress) -> BuildResult:
    """Build what `asked` asks for beside what is in the index, and remember the choice.

    Only what could be had is remembered: a repository that never answered is asked for anew by
    whoever wants it.

    Raises:
        ToolError: The selection names something that there is not.
        SetupError: No source could be had, or the folder cannot be written.
    """
    folder = ensure_folder(choices_folder(settings))
    with file_lock(folder / "lock", lambda: on_progress(WAITING)):
        built = _built(settings)
        before = read_choices(settings)
        selection = whole_selection(asked, before, built)
        result = build_library(selection, settings, on_progress)
        kept = [one.source for one in result.sources]
        chosen = Choices(git=selection.git, folders=selection.folders, forgotten=before.forgotten)
        write_choices(chosen.among(kept), settings)
    return result


def forget_source(name: str, settings: Settings, on_progress: OnProgress) -> None:
    """Take the source `name` out of the index and of what later builds hold.

    Downloaded files stay, so that it can come back without a network.

    Raises:
        ToolError: It is neither in the index nor a library; the message has what is.
    """
    with file_lock(ensure_folder(choices_folder(settings)) / "lock", lambda: on_progress(WAITING)):
        built = _built(settings)
        choices = read_choices(settings)
        if name not in built and choices.without(name) == choices:
            present = f"it has {', '.join(built)}" if built else "it is not built"
            raise ToolError(f"the library index has no source {name[:60]!r}; {present}")
        write_choices(choices.without(name), settings)
        if name not in built:
            return
        with file_lock(library_folder(settings) / "lock"):
            parts = Parts(settings)
            left = [one for one in parts.sources() if one.source.key != name]
            parts.settle(left)
            if left:
                assemble(settings, on_progress)
            else:
                library_index_path(settings).unlink(missing_ok=True)


def _built(settings: Settings) -> list[str]:
    """Return the sources of the index; of one that does not say, those that it was made of."""
    path = library_index_path(settings)
    made_of = Parts(settings).made_of().sources if path.exists() else ()
    stated = [one.source for one in read_meta(path).sources]
    return stated or [one.source.key for one in made_of]
