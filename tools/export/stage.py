"""Writing an export: a new folder, whole or not at all."""

from pathlib import Path
from typing import Literal

from pydantic import Field

from kopt.config.errors import SetupError, ToolError
from kopt.config.files import publish_folder, staging_folder
from kopt.kernels.receipt import ReceiptStanding
from kopt.kernels.record import Record
from kopt.kernels.status import Status

from .exported_kernel import ExportedKernel, Form
from .folder_files import Files, folder_files


class ExportResult(Record):
    """What was written."""

    schema_: Literal["kopt.export/1"] = Field(default="kopt.export/1", alias="schema")
    status: Literal[Status.PASSED] = Status.PASSED
    form: Form
    kernels: tuple[str, ...]
    """Kernel ids that the export serves."""
    unserved: tuple[str, ...] = ()
    """Conditions of the variants that none of them takes: shapes that would are refused."""
    candidate: str
    """SHA-256 of the source."""
    arch: str
    receipt: str | None
    """Digest of its receipt; None if it has none."""
    standing: ReceiptStanding | None = None
    """What that receipt rests on, on the machine that exports; None without one."""
    folder: str
    files: tuple[str, ...]
    """Paths in the folder."""
    test: str
    """The command that builds and tests it, to be run in the folder, on a machine with a GPU."""


def export(
    exported: ExportedKernel, form: Form, folder: Path, *, module: bool = False
) -> ExportResult:
    """Write the export of `exported` as `form` to `folder`, which must not exist or be empty.

    With `module` the package of torch has an nn.Module, too.

    Raises:
        ToolError: `folder` holds something, or the kernel is not what this form can hold.
        SetupError: The folder cannot be written.
    """
    refuse_full_folder(folder)
    files = folder_files(exported, form, module=module)
    _write(files, folder)
    problem = exported.problem
    return ExportResult(
        form=form,
        kernels=tuple(problem.kernel_id(workload) for workload in exported.domain),
        unserved=exported.unserved,
        candidate=exported.candidate.id,
        arch=exported.arch,
        receipt=None if exported.receipt is None else exported.receipt.digest,
        standing=None if exported.receipt is None else exported.standing,
        folder=str(folder),
        files=tuple(sorted(files)),
        test="make test" if form == "cuda" else "python test/run.py",
    )


def refuse_full_folder(folder: Path) -> None:
    """Refuse a folder that holds something.

    Raises:
        ToolError: It does, or is none.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ToolError(_not_empty(folder))


def _write(files: Files, folder: Path) -> None:
    target = folder.absolute()
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with staging_folder(target) as staging:
            for name, content in files.items():
                path = staging / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content.encode() if isinstance(content, str) else content)
            staging.chmod(0o755)
            if not publish_folder(staging, target, durable=True):
                raise ToolError(_not_empty(folder))
    except OSError as error:
        raise SetupError(f"cannot write {folder}: {error.strerror}") from error


def _not_empty(folder: Path) -> str:
    return f"{folder} exists and is not an empty folder: name another with -o DIR"
