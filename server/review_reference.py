"""What `kopt review --reference` makes of a PyTorch file, and what the page says of it."""

import re
import shutil
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from tempfile import mkdtemp

from kopt.config.errors import ToolError
from kopt.config.files import ensure_folder, evict_least_used
from kopt.config.settings import Settings
from kopt.tools.facts.wording import short_id
from kopt.tools.pytorch.importing.request import ExportRequest
from kopt.tools.pytorch.importing.stage import (
    MODEL_FILE,
    ImportRequest,
    ImportResult,
    import_function,
)

KEPT_REFERENCES = 16
"""So many are kept, that what a page says can be looked at; the oldest go first."""
_LONGEST = 60
"""Characters of a file's name in the problem's."""


def import_reference(
    reference: Path, settings: Settings, progress: Callable[[str], None]
) -> ImportResult:
    """Return the problem, alone in a folder of its own in KOPT_HOME's cache of references.

    Its name begins so that no packaged problem has it. Nothing stays of a file that is refused.

    Raises:
        ToolError: The file is no Python file, or cannot be imported.
        SetupError: torch is not installed.
    """
    if reference.suffix != ".py":
        raise ToolError(f"--reference {reference} is no Python file (FILE.py)")
    source = reference.absolute()
    export = ExportRequest(source=str(source), import_path=(str(source.parent),))
    stem = re.sub(r"[^a-z0-9]+", "_", reference.stem.lower())[:_LONGEST].strip("_")
    references = ensure_folder(settings.references)
    evict_least_used(references, KEPT_REFERENCES - 1)
    folder = Path(mkdtemp(prefix="reference-", dir=references))
    request = ImportRequest(export, folder, f"reference_{stem}".rstrip("_"), progress)
    try:
        return import_function(request, settings)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def reference_words(made: ImportResult) -> tuple[str, ...]:
    """Return of what the problem was made, and what its import has warned of."""
    text = (Path(made.folder) / MODEL_FILE).read_bytes()
    return (
        f"{Path(made.source).name} ({short_id(sha256(text).hexdigest())}), imported from PyTorch"
        f" {made.torch} to {made.folder}",
        *made.warnings,
    )
