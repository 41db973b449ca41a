"""The result of `kopt doctor --calibrate` on a terminal, as a data sheet has it."""

from rich.text import Text

from kopt.kernels.calibration import GpuCalibration

from .tables import View, grid


def calibration_view(result: GpuCalibration) -> View:
    """Yield a row for each value, and where it belongs."""
    table = grid("measured", "value#", "unit", "what it is")
    for one in result.values:
        table.add_row(one.key, f"{one.value:,.3f}".rstrip("0").rstrip("."), one.unit, one.meaning)
    yield table
    gpu = result.device
    yield Text(
        f"Measured on {gpu.name}, driver {gpu.driver_version}, {result.day}, in"
        f" {result.elapsed_s:.0f} s. A data sheet in config/gpus/ takes them under `measured`."
    )
