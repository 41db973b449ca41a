"""What this machine evaluates candidates with."""

from collections.abc import Callable
from dataclasses import dataclass, field

from kopt.config.callbacks import ignore
from kopt.config.settings import Settings
from kopt.search.storage.artifacts import ArtifactStore
from kopt.tools.devices.device import Device
from kopt.tools.devices.timer import TimingDevice

from .reuse import MeasuredOnce


@dataclass(frozen=True)
class EvaluationSite:
    """What this machine evaluates with."""

    device: Device
    timer: TimingDevice | None
    """`device` where it is a GPU; None on sim, which measures no time."""
    settings: Settings
    artifacts: ArtifactStore
    measured: MeasuredOnce = field(default_factory=MeasuredOnce)
    """What was measured here since the process began."""
    say: Callable[[str], None] = ignore
    """Told, from any thread, what goes on besides the events of a run: what its first timing waits
    for, that the leader is profiled or promoted."""
