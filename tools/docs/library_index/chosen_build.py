"""Building and thinning out the library index by what the user chose, one process at a time.

A build holds what is asked for and what was chosen before, so that nothing leaves the index but by
`forget_source`.
"""

from kopt.config.errors import ToolError
from kopt.config.files import ensure_folder
from kopt.config.locks import file_lock
from kopt.config.settings import Settings

from .assembly import assemble
from .build import BuildRequest, build_library
from .build_records import WAITING, BuildResult, OnProgress
from .choices import (
    choices_folder,
    choices_of,
    read_choices,
    whole_selection,
    write_choices,
)
from .kept_index import built_sources
from .parts import Parts
from .place import library_folder, library_index_path, parts_path


def build_chosen(request: BuildRequest, settings: Settings, on_progress: OnProgress) -> BuildResult:
    """Build what `request` asks for beside what is in the index, and remember the choice.

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
        selection = whole_selection(request.selection, before, built)
        result = build_library(BuildRequest(selection, request.fresh), settings, on_progress)
        kept = [one.source for one in result.sources]
        write_choices(choices_of(selection, before.forgotten).among(kept), settings)
    return result


def forget_source(name: str, settings: Settings, on_progress: OnProgress) -> None:
    """Take the source `name` out of the index and of what later builds hold.

    Downloaded files stay, so that it can come back without a network.

    Raises:
        ToolError: It is neither in the index nor a library; the message has what is.
    """
    path = library_index_path(settings)
    with file_lock(ensure_folder(choices_folder(settings)) / "lock", lambda: on_progress(WAITING)):
        built = _built(settings)
        choices = read_choices(settings)
        if name not in built and choices.without(name) == choices:
            present = f"it has {', '.join(built)}" if built else "it is not built"
            raise ToolError(f"the library index has no source {name[:60]!r}; {present}")
        write_choices(choices.without(name), settings)
        if name not in built:
            return
        with file_lock(library_folder(settings) / "lock"), Parts(parts_path(settings)) as parts:
            left = [one for one in parts.sources() if one.source.key != name]
            parts.settle(left)
            if left:
                assemble(parts, path, on_progress)
            else:
                path.unlink(missing_ok=True)


def _built(settings: Settings) -> list[str]:
    """Return the sources of the index; of one that does not say, those that it was made of."""
    path = library_index_path(settings)
    built = [one.source for one in built_sources(path)]
    if built or not path.exists():
        return built
    with file_lock(library_folder(settings) / "lock"), Parts(parts_path(settings)) as parts:
        return [one.source.key for one in parts.sources()]
