"""What a GPU was found to take for single things: latencies, launches, copies."""

from typing import Literal

from pydantic import ConfigDict, Field

from .device_facts import DeviceFacts
from .record import Record
from .status import Provenance


class CalibratedValue(Record):
    """One thing that was measured."""

    name: str
    value: float
    unit: str
    """clocks, us, ns or GB/s."""
    meaning: str
    """It says in a line between which moments, or of which bytes, the value was measured."""

    @property
    def key(self) -> str:
        """The name that a data sheet has it under, which ends with the unit: `copy_1_mib_gb_s`."""
        return f"{self.name}_{self.unit.lower().replace('/', '_')}"


class GpuCalibration(Record):
    """What `kopt doctor --calibrate` measures on one GPU."""

    model_config = ConfigDict(populate_by_name=True, serialize_by_alias=True)

    schema_: Literal["kopt.calibration/1"] = Field(default="kopt.calibration/1", alias="schema")
    device: DeviceFacts
    day: str
    """UTC day, ISO 8601."""
    values: tuple[CalibratedValue, ...]
    elapsed_s: float
    provenance: Provenance = Provenance.MEASURED
