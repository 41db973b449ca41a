"""A pool as a device: several GPUs of one model, or several simulators."""

from kopt.kernels.device_facts import DeviceFacts
from kopt.tools.remote.answers import OpenedAnswer
from kopt.tools.remote.device import RemoteDevice, RemoteGpu

from .pool_uplink import PoolUplink


class PoolSim(RemoteDevice):
    """Implements `tools.device.Device` and `ManyEvaluators`: the simulators of a pool."""

    def __init__(self, uplink: PoolUplink) -> None:
        """Take over an uplink whose pool is open (`open_pool`)."""
        super().__init__(uplink)
        self._pool = uplink

    @property
    def evaluators(self) -> int:
        """How many there are now."""
        return self._pool.width()


class PoolGpu(RemoteGpu):
    """Implements `tools.timer.TimingDevice` and `ManyEvaluators`: the GPUs of a pool."""

    def __init__(self, uplink: PoolUplink, opened: OpenedAnswer) -> None:
        """Take over an uplink whose pool is open (`open_pool`)."""
        super().__init__(uplink, opened)
        self._pool = uplink

    @property
    def facts(self) -> DeviceFacts:
        """The GPU that the present piece of work keeps to."""
        return self._pool.facts()

    @property
    def evaluators(self) -> int:
        """How many GPUs of the model there are now."""
        return self._pool.width()
