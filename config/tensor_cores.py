"""What tensor cores do in a clock, by compute capability and width of numbers: peaks for floors.

Dense products, the fastest accumulation. Sources: NVIDIA's architecture white papers (Volta,
Turing, Ampere GA100 and GA102, Ada, Hopper, Blackwell; tables "Tensor Core" and peak rates divided
by SMs and boost clock). Where a rate was rounded there, the next power of two above stands here: a
floor must not be beaten.
"""

from .gpu_specs import GpuSpec

_FLOP_PER_CLOCK: dict[tuple[int, int], dict[int, int]] = {
    (7, 0): {16: 1024},
    (7, 5): {16: 1024, 8: 2048},
    (8, 0): {64: 128, 16: 2048, 8: 4096},
    (8, 6): {16: 1024, 8: 2048},
    (8, 7): {16: 2048, 8: 4096},
    (8, 9): {16: 1024, 8: 2048},
    (9, 0): {64: 256, 16: 4096, 8: 8192},
    (10, 0): {64: 256, 16: 8192, 8: 16384, 4: 32768},
    (10, 3): {64: 256, 16: 8192, 8: 16384, 4: 65536},
    (11, 0): {16: 8192, 8: 16384, 4: 32768},
    (12, 0): {16: 1024, 8: 2048, 4: 8192},
    (12, 1): {16: 1024, 8: 2048, 4: 8192},
}
"""Operations of one SM in one clock, a fused multiply-add being two, by bits of a factor."""


def tensor_tflop_s(gpu: GpuSpec, bits: int) -> float | None:
    """Return the peak of a GPU's tensor cores, 1e12 operations a second, at its boost clock.

    Args:
        gpu: Its SMs and clock count.
        bits: Of a factor. 32 stands for 16: what is asked of a float32 product follows from its
            oracle, and a kernel may make it from products of 16 bits. Where there is no rate of
            these bits that of the next wider ones counts.

    Returns:
        None where the architecture is not known, or has nothing that wide.
    """
    peaks = tensor_peaks(gpu)
    asked = 16 if bits == 32 else bits
    wide_enough = [one for one in peaks if one >= asked]
    return peaks[min(wide_enough)] if wide_enough else None


def tensor_peaks(gpu: GpuSpec) -> dict[int, float]:
    """Return the peaks of a GPU's tensor cores, 1e12 operations a second, by bits of a factor."""
    rates = _FLOP_PER_CLOCK.get(gpu.compute_capability, {})
    return {bits: gpu.sm_count * rate * gpu.clock_mhz / 1e6 for bits, rate in rates.items()}
