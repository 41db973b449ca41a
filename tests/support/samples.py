"""What tests share of the samples: a check on the simulator, and a result in words."""

from functools import lru_cache

from kopt.config.settings import DEFAULT_ARCH, Settings
from kopt.kernels.check_result import CheckResult
from kopt.tools.cuda.compile_job import Compiler
from kopt.tools.devices.device import Device
from kopt.tools.selftest import sample as samples
from kopt.tools.selftest.sample import ShippedSample
from kopt.tools.sim.device import SimDevice

_EVERY = 3
"""`make test-all` checks every third good sample, by name; `make test-nightly` the others."""
_LONG = ("every_step_in_bf16", "library_stores", "local_array_cleared", "row_tiles_masked")
"""Good samples that take seven to sixteen seconds of processor time, where others take one or two:
they are left to `make test-nightly`, too."""


SILU = "silu_and_mul_b8xh14336"
"""The kernel of the samples that client tests hand in."""


def plain_source(name: str) -> str:
    """Return the source of a sample, without the line that is for the tests."""
    lines = (samples.SAMPLES / name).read_text("utf-8").splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith("// sample:"))


def is_nightly(sample: ShippedSample) -> bool:
    """Return whether the sample is left to `make test-nightly`: most good ones, no evil one."""
    return sample.name in _nightly_names()


@lru_cache
def _nightly_names() -> frozenset[str]:
    good = sorted(one.name for one in samples.read_samples() if one.name.startswith("good_"))
    long = {f"good_{name}" for name in _LONG}
    return frozenset(good) - (frozenset(good[::_EVERY]) - long)


def check_sample(
    sample: ShippedSample,
    settings: Settings,
    device: Device | None = None,
    arch: str = DEFAULT_ARCH,
    compiler: Compiler = "nvcc",
) -> CheckResult:
    """Check `sample` at its own level, on the simulator if no device is given."""
    return samples.check_sample(sample, device or SimDevice(settings), arch, settings, compiler)


def describe(result: CheckResult) -> str:
    """Return the findings of `result` as lines of text, for the message of a failing test."""
    found = [f"status {result.status}"]
    found += [f"line {d.line}: {d.message} [{d.hint}]" for d in result.diagnostics]
    if result.mismatch is not None:
        found.append(result.mismatch.model_dump_json())
    return "\n".join(found)
