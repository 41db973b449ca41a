"""What is known of the GPU that a result was measured on; part of every measured result."""

from .record import Record


class DeviceFacts(Record):
    """One GPU and its driver, as they were when the result was made."""

    index: int
    """Number in `cuda:<index>`, counted within CUDA_VISIBLE_DEVICES."""
    uuid: str
    """`GPU-…`; names the device across processes, users and reboots."""
    name: str
    """e.g. NVIDIA H100 80GB HBM3."""
    compute_capability: tuple[int, int]
    sm_count: int
    l2_bytes: int
    memory_bytes: int
    driver_version: str
    """e.g. 580.159.04."""
    cuda_version: str
    """The newest CUDA that the driver supports, e.g. 13.0."""

    @property
    def arch(self) -> str:
        """Compiler target: sm_90a for compute capability 9.0."""
        major, minor = self.compute_capability
        return f"sm_{major}{minor}{'a' if major >= 9 else ''}"
