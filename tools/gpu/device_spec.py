"""The limits and peaks of a GPU at hand: the driver's values, and a data sheet's where one fits.

One chip is sold with different memory and different numbers of SMs: an H100 PCIe has neither the
bandwidth nor the SMs of the H100 SXM that config/gpus/h100.yaml describes.
"""

import re
from collections.abc import Mapping
from dataclasses import replace

from kopt.config.errors import SetupError
from kopt.config.gpu_specs import GpuSpec, load_gpus
from kopt.kernels.device_facts import DeviceFacts

_MEMORY_TOLERANCE = 0.05
"""Between a data sheet's rounded bandwidth and clock times bus width: H200 2.4 %, H100 0.1 %."""


def spec_of_device(facts: DeviceFacts, device: Mapping[str, int]) -> GpuSpec:
    """Return the spec of one GPU.

    Args:
        facts: What is known of it.
        device: The driver's attributes by the names of driver_child.py; clocks in kHz.

    Raises:
        SetupError: Neither a data sheet nor the driver knows the memory's bandwidth.
    """
    bandwidth_gb_s = _bandwidth_gb_s(device)
    sheet = _fitting_sheet(facts, bandwidth_gb_s)
    if sheet is not None:
        return replace(sheet, arch=facts.arch, l2_bytes=facts.l2_bytes)
    if bandwidth_gb_s == 0:
        raise SetupError(
            f"the driver gives no memory clock for {facts.name}: describe it under config/gpus/"
        )
    measured = load_gpus()["H100"]
    lanes = 64 if facts.compute_capability in ((7, 0), (7, 5), (8, 0)) else 128
    return GpuSpec(
        name=facts.name.removeprefix("NVIDIA "),
        arch=facts.arch,
        compute_capability=facts.compute_capability,
        sm_count=facts.sm_count,
        clock_mhz=device["clock_khz"] // 1000,
        dram_bandwidth_gb_s=bandwidth_gb_s,
        l2_bytes=facts.l2_bytes,
        # Each FP32 lane does one fused multiply-add per clock (programming guide, "Arithmetic
        # Instructions").
        fp32_tflop_s=facts.sm_count * lanes * 2 * device["clock_khz"] * 1e3 / 1e12,
        max_threads_per_sm=device["max_threads_per_sm"],
        max_blocks_per_sm=device["max_blocks_per_sm"],
        registers_per_sm=device["registers_per_sm"],
        smem_per_sm_bytes=device["smem_per_sm_bytes"],
        smem_per_block_optin_bytes=device["smem_per_block_optin_bytes"],
        reserved_smem_per_block_bytes=device["reserved_smem_per_block_bytes"],
        null_kernel_us=measured.null_kernel_us,
        null_kernel_measured_on=measured.name,
    )


def _bandwidth_gb_s(device: Mapping[str, int]) -> float:
    """Return the DRAM peak, 1e9 bytes/s: two transfers per clock over the whole bus."""
    return 2 * device["memory_clock_khz"] * 1e3 * device["memory_bus_bits"] / 8 / 1e9


def _fitting_sheet(facts: DeviceFacts, bandwidth_gb_s: float) -> GpuSpec | None:
    for sheet in load_gpus().values():
        off = abs(bandwidth_gb_s / sheet.dram_bandwidth_gb_s - 1) if bandwidth_gb_s else 0.0
        if (
            # A word of its own: a GH200 is no H200.
            re.search(rf"\b{sheet.name}\b", facts.name)
            and sheet.compute_capability == facts.compute_capability
            and sheet.sm_count == facts.sm_count
            and off <= _MEMORY_TOLERANCE
        ):
            return sheet
    return None
