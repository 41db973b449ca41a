"""A kernel's instruction mix as the time model reads it: counts of the code, not of a run."""

from collections import Counter
from dataclasses import dataclass

from kopt.kernels.compile_result import KernelResources

from . import constants

_REGISTER_BYTES = 4
_ASYNC_COPY_BYTES = 16.0


@dataclass(frozen=True)
class StaticMix:
    """Counts and widths of one kernel's instructions."""

    kernel: KernelResources

    def count(self, name: str) -> int:
        """Instructions of one class."""
        return self.kernel.instruction_mix.get(name, 0)

    @property
    def loads(self) -> int:
        """Global loads, asynchronous copies among them."""
        return sum(self._loads.values()) + self.count("ld")

    @property
    def stores(self) -> int:
        """Global stores."""
        return sum(self._widths("stg_").values()) + self.count("st")

    @property
    def accesses(self) -> int:
        """Global loads and stores."""
        return self.loads + self.stores

    @property
    def load_bytes(self) -> float:
        """Mean bytes that one thread's load asks for."""
        return _mean_width(self._loads)

    @property
    def store_bytes(self) -> float:
        """Mean bytes that one thread's store writes."""
        return _mean_width(self._widths("stg_"))

    @property
    def access_bytes(self) -> float:
        """Mean bytes of one thread's load or store."""
        stores = self._widths("stg_")
        count = self.loads + sum(stores.values())
        if not count:
            return constants.ASSUMED_ACCESS_BYTES
        total = sum(width * number for width, number in stores.items())
        return (total + self.load_bytes * self.loads) / count

    @property
    def spills(self) -> float:
        """Local loads and stores; without a mix, one per spilled register."""
        counted = self.count("ldl") + self.count("stl")
        spilled = self.kernel.spill_load_bytes + self.kernel.spill_store_bytes
        return max(counted, spilled / _REGISTER_BYTES)

    def clocks_per_warp(self) -> tuple[str, float]:
        """The pipe that needs the most SM clocks for the code gone through once, and how many."""
        clocks = {
            name: each * self.count(name) for name, each in constants.SLOW_CLASS_CLOCKS.items()
        }
        clocks["issue slots"] = (self.kernel.instructions or 0) / constants.ISSUE_SLOTS_PER_CLOCK
        slowest = max(clocks, key=lambda name: clocks[name])
        return slowest, clocks[slowest]

    @property
    def _loads(self) -> Counter[float]:
        return self._widths("ldg_") + Counter({_ASYNC_COPY_BYTES: self.count("ldgsts")})

    def _widths(self, prefix: str) -> Counter[float]:
        """Bytes of an access to the number of instructions of that width."""
        return Counter(
            {
                int(name.removeprefix(prefix)) / 8: number
                for name, number in self.kernel.instruction_mix.items()
                if name.startswith(prefix)
            }
        )


def _mean_width(widths: Counter[float]) -> float:
    total = sum(width * number for width, number in widths.items())
    return total / widths.total() if widths.total() else constants.ASSUMED_ACCESS_BYTES
