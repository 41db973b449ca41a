"""Which device files a process needs to use NVIDIA GPUs; looks at names only, opens nothing."""

from pathlib import Path

_PATTERNS = (
    "nvidia[0-9]*",
    "nvidiactl",
    "nvidia-uvm",
    "nvidia-uvm-tools",
    "nvidia-modeset",
    "nvidia-caps",  # a folder: MIG and others
    "nvidia-caps-imex-channels",
    "dxg",  # the paravirtual GPU of WSL 2
)


def gpu_devices(folder: Path = Path("/dev")) -> tuple[Path, ...]:
    """Return what there is of them below `folder`; nothing without a driver."""
    return tuple(
        path for pattern in _PATTERNS for path in sorted(folder.glob(pattern)) if path.exists()
    )
