"""Receipts by their places: files, and folders with all below them. Each receipt comes once."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from kopt.config.errors import ToolError
from kopt.kernels.receipt import Receipt

from .receipt_file import WHAT_IT_IS, read_receipt

SUFFIX = ".receipt.json"


@dataclass(frozen=True)
class FoundReceipt:
    """A receipt with its files, or a file that holds none that can be used."""

    files: tuple[str, ...]
    receipt: Receipt | None
    error: str | None = None
    """Why there is no receipt."""


def find_receipts(places: Sequence[Path]) -> tuple[FoundReceipt, ...]:
    """Return the receipts in the order of their first file; equal digests are one receipt.

    A file that cannot be used is an entry with its reason, so that the others are verified.

    Raises:
        ToolError: A place is a kernel's source, or a folder without receipts.
    """
    found: dict[str, FoundReceipt] = {}
    for path in dict.fromkeys(path for place in places for path in _files_at(place)):
        try:
            receipt = read_receipt(path)
        except ToolError as error:
            found[f"file {path}"] = FoundReceipt((str(path),), None, str(error))
            continue
        known = found.get(receipt.digest)
        files = () if known is None else known.files
        found[receipt.digest] = FoundReceipt((*files, str(path)), receipt)
    return tuple(found.values())


def refuse_source(path: Path) -> None:
    """Refuse a kernel's source where its receipt is meant.

    Raises:
        ToolError: The message names the receipt.
    """
    if path.suffix == ".cu":
        raise ToolError(f"{path} is a source; name its receipt: {path.with_suffix(SUFFIX)}")


def _files_at(place: Path) -> Iterator[Path]:
    refuse_source(place)
    if not place.is_dir():
        yield place
        return
    below = sorted(place.rglob(f"*{SUFFIX}"))
    if not below:
        raise ToolError(f"no receipt lies below {place}; {WHAT_IT_IS}")
    yield from below
