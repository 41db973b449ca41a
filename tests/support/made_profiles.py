"""Profiles of made-up candidates: the real rule for the bottleneck over made-up estimates."""

from kopt.config.gpu_specs import load_gpus
from kopt.kernels.counters import HardwareCounters, LaunchCounters
from kopt.kernels.profile_result import (
    LaunchProfile,
    ProfileResult,
    Suspect,
    SuspectName,
    TensorTraffic,
)
from kopt.kernels.roofline import roofline
from kopt.kernels.status import Provenance, Status
from kopt.tools.cuda.occupancy import launch_occupancy
from kopt.tools.profiling.bottleneck import ProfileFacts, find_bottleneck
from kopt.tools.profiling.suspect_words import SUSPECTS

from .estimate_cases import EstimateCase


def profile_of(case: EstimateCase, *counters: LaunchCounters) -> ProfileResult:
    """Return the profile of `case` as the profile stage would join it, with a GPU's counters."""
    gpu, model = load_gpus()[case.gpu], case.model()
    launches = tuple(
        LaunchProfile(
            kernel=launch.kernel,
            grid=launch.grid,
            block=launch.block,
            dynamic_smem_bytes=0,
            resources=case.kernel(),
            occupancy=launch_occupancy(launch, case.kernel(), gpu),
        )
        for launch in case.plan().launches
    )
    facts = ProfileFacts(model, launches, case.estimate(), counters=counters)
    measured = HardwareCounters(launches=counters, provenance=Provenance.MEASURED)
    return ProfileResult(
        status=Status.PASSED,
        kernel=model.kernel,
        candidate="c",
        arch=gpu.arch,
        gpu=gpu.name,
        byte_model=model,
        roofline=roofline(model, gpu),
        launches=launches,
        counters=case.counters(),
        traffic=_traffic(case),
        estimate=case.estimate(),
        suspects=tuple(_suspect(name, place) for place, name in enumerate(case.suspects)),
        hardware=measured if counters else None,
        bottleneck=find_bottleneck(facts),
    )


def _suspect(name: SuspectName, place: int) -> Suspect:
    words = SUSPECTS[name]
    return Suspect(
        name=name,
        statement=words.statement,
        evidence=(),
        gain_us=1 / (place + 1),
        families=words.families,
    )


def _traffic(case: EstimateCase) -> tuple[TensorTraffic, ...]:
    counted = case.counters().traffic
    return tuple(
        TensorTraffic(
            name=one.name,
            role=one.role,
            needed_read_bytes=one.read_bytes,
            needed_written_bytes=one.written_bytes,
            load_bytes=counted[one.name].load_bytes,
            store_bytes=counted[one.name].store_bytes,
            sectors_per_request=counted[one.name].sectors_per_request,
            ideal_sectors_per_request=counted[one.name].ideal_sectors_per_request,
        )
        for one in case.model().tensors
    )
