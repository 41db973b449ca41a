"""A package that is installed, as far as its files tell."""

from collections.abc import Mapping
from pathlib import Path


def install_package(site: Path, project: str, version: str, files: Mapping[str, bytes]) -> None:
    """Put a distribution and its files into the folder `site`, which is on sys.path."""
    for name, data in files.items():
        path = site / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    info = site / f"{project.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project}\nVersion: {version}\n", encoding="utf-8"
    )
    (info / "RECORD").write_text("".join(f"{name},,\n" for name in files), encoding="utf-8")
