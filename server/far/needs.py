"""What this machine has of all that a device needs for a caller elsewhere.

No compiler of CUDA and no key: the caller compiles, searches and keeps all records.
"""

import sys
from collections.abc import Iterator
from dataclasses import replace

from kopt.config.settings import Settings
from kopt.server.doctor.findings import DoctorFinding, machine_findings
from kopt.server.doctor.gpu_findings import EXTRA, gpu_findings
from kopt.tools.remote.answers import FoundThing

_ALWAYS = ("platform", "sandbox", "state folder")
_FOR_SIM = ("host compiler", "CUDA headers", "processor")
_PACKAGES = (
    f"{sys.executable} -m pip install 'cuda-bindings==13.*' 'nvidia-ml-py>=13'"
    " 'flashinfer-python>=0.7' 'torch>=2.9' 'ncu-report>=2026.3'"
)
"""The distributions of the extra `gpu`, where kopt itself is not installed."""


def things_for(device: str, settings: Settings) -> Iterator[FoundThing]:
    """Yield what is found: for the simulator what it is built with, for a GPU all about it."""
    wanted = _ALWAYS + (_FOR_SIM if device == "sim" else ())
    findings = [one for one in machine_findings(settings) if one.name in wanted]
    if device != "sim":
        findings += [_required(one, device) for one in gpu_findings(settings)]
    for one in findings:
        yield FoundThing(
            name=one.name,
            is_present=one.is_present,
            is_required=one.is_required,
            detail=one.detail.replace(EXTRA, _PACKAGES),
        )


def _required(finding: DoctorFinding, device: str) -> DoctorFinding:
    """Return a finding that is no option here: the GPU that was asked for, and its bindings."""
    needed = ("GPU", f"GPU {device}", "GPU in the sandbox", "CUDA bindings", "NVML")
    if finding.name not in needed:
        return finding
    detail = finding.detail.replace("none can be used, so kopt works on sim: ", "")
    return replace(finding, is_required=True, detail=detail)
