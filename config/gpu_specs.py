"""GPU data sheets: the limits and peaks of each GPU that kopt knows, from config/gpus/*.yaml."""

import re
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files

from .errors import ToolError
from .near_matches import near_matches
from .plain_text import plain

_SHOWN = 80
"""Characters of an unknown name that a message repeats."""
_ARCH = re.compile(r"sm_\d{2,3}[af]?")


@dataclass(frozen=True)
class GpuSpec:
    """Data-sheet values of one GPU; `config/gpus/<name>.yaml` names their sources."""

    name: str
    arch: str
    """Compiler target, e.g. sm_100a."""
    compute_capability: tuple[int, int]
    sm_count: int
    clock_mhz: int
    """Boost clock."""
    dram_bandwidth_gb_s: float
    """Peak, 1e9 bytes per second."""
    l2_bytes: int
    fp32_tflop_s: float
    max_threads_per_sm: int
    max_blocks_per_sm: int
    registers_per_sm: int
    smem_per_sm_bytes: int
    smem_per_block_optin_bytes: int
    """The most dynamic plus static shared memory that a block can opt in to."""
    reserved_smem_per_block_bytes: int
    null_kernel_us: float
    """The least time of a launch: an empty kernel of one block in a row of a CUDA graph, by
    programmatic dependent launch where the GPU has it."""
    null_kernel_measured_on: str
    """The GPU on which that time was measured; another one's time is taken over."""
    measured: tuple[tuple[str, float], ...] = ()
    """What `kopt doctor --calibrate` found on such a GPU, by name, in the unit that the name ends
    with; () where none was at hand."""

    def describes(self, device_name: str) -> bool:
        """Return whether the driver's name of a device has this GPU's in it, as words of its own.

        `NVIDIA GH200 480GB` is no H200, and an `NVIDIA L40S` no L4.
        """
        return re.search(rf"\b{re.escape(self.name)}\b", device_name) is not None


@lru_cache
def load_gpus() -> dict[str, GpuSpec]:
    """Return every data sheet, by name."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the latter takes eight times as long
    gpus: dict[str, GpuSpec] = {}
    for entry in sorted(files("kopt.config").joinpath("gpus").iterdir(), key=lambda e: e.name):
        if entry.name.endswith(".yaml"):
            fields = yaml.load(entry.read_text("utf-8"), Loader=loader)
            fields["compute_capability"] = tuple(fields["compute_capability"])
            fields["measured"] = tuple(fields.get("measured", {}).items())
            spec = GpuSpec(**fields)
            gpus[spec.name] = spec
    return gpus


def featured_gpus() -> list[GpuSpec]:
    """Return the data-center GPUs whose limits are listed for every kernel."""
    return [load_gpus()[name] for name in ("A100", "B200", "H100", "H200")]


def gpu_named(text: str) -> GpuSpec | None:
    """Return the data sheet of `text`, however it is spelled: `RTX 4090`, `rtx4090`, `rtx-4090`."""

    def letters(name: str) -> str:
        return re.sub(r"[\s_-]", "", name).casefold()

    return next((gpu for gpu in load_gpus().values() if letters(gpu.name) == letters(text)), None)


@dataclass(frozen=True)
class Target:
    """What candidates are compiled for, and the GPU that limits and estimates are of."""

    arch: str
    gpu: GpuSpec
    """The one that was named, else the one that stands for the architecture."""

    @property
    def name(self) -> str:
        """The architecture alone where that says which GPU, else the GPU's name."""
        return self.arch if self.gpu == gpu_for_arch(self.arch) else self.gpu.name


def target_named(text: str) -> Target:
    """Return the target that `text` names: `sm_90a`, or a GPU such as `H200`.

    Raises:
        ToolError: It is no target and no GPU, or no data sheet has the target's limits.
    """
    gpu = gpu_named(text)
    if gpu is not None:
        return Target(gpu.arch, gpu)
    if not _ARCH.fullmatch(text):
        known = [*load_gpus(), *sorted({gpu.arch for gpu in load_gpus().values()})]
        raise ToolError(
            f"{plain(text[:_SHOWN])!r} is neither an architecture such as sm_90a nor a GPU such as"
            f" H100; {near_matches(text[:_SHOWN], known)}"
        )
    return Target(text, gpu_for_arch(text))


def arch_named(text: str) -> str:
    """Return the compiler target that `text` is, or that of the GPU which it names.

    Raises:
        ToolError: As `target_named`.
    """
    return target_named(text).arch


def gpu_for_arch(arch: str) -> GpuSpec:
    """Return the data sheet whose limits stand for `arch`: B200 for sm_100a, H100 for sm_90a.

    Raises:
        ToolError: No data sheet has this architecture.
    """
    wanted = arch.rstrip("af")
    for name in ("B200", "H100", "A100", "L40S", *load_gpus()):
        gpu = load_gpus()[name]
        if gpu.arch.rstrip("af") == wanted:
            return gpu
    known = ", ".join(sorted({gpu.arch for gpu in load_gpus().values()}))
    raise ToolError(f"no GPU data sheet for {arch}; known: {known} (config/gpus/)")
