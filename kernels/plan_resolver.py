"""Numbers for a header: the launch plan of one workload and one choice of tune values.

Limits that follow from the header and the GPU alone are checked here (`plan_limits.py`);
what needs the cubin is `plan_check.py`'s.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from math import prod

from kopt.config.gpu_specs import GpuSpec
from kopt.config.near_matches import near_matches

from .case import Case
from .domain import default_tune
from .expressions import ExpressionError, evaluate_expression, evaluate_predicate
from .header import ArgumentTemplate, CandidateHeader, LaunchTemplate, TensorMapTemplate, Variant
from .plan import Argument, ArgumentKind, Dim3, Launch, LaunchPlan, PlanOutcome, Scratch, TensorMap
from .plan_limits import MappedBuffer, launch_mistakes, scratch_mistakes, tensor_map_mistakes
from .problem import storage_shape
from .record import Findings

BlocksPerSm = Callable[[str, int, int], int]
"""(kernel, threads per block, dynamic shared memory in bytes) -> co-resident blocks on one SM."""


def needs_blocks_per_sm(header: CandidateHeader) -> bool:
    """Return whether a grid uses `blocks_per_sm`, so that the plan is final only after a build."""
    return any(
        "blocks_per_sm" in text
        for variant in header.variants
        for launch in variant.launch
        for text in launch.grid
    )


def resolve_plan(case: Case, gpu: GpuSpec, blocks_per_sm: BlocksPerSm | None = None) -> PlanOutcome:
    """Return the launch plan, or one diagnostic for each reason why there is none.

    Args:
        case: The candidate, its workload and its tune values; a variant's `set` overrides these.
        gpu: What it is launched on.
        blocks_per_sm: Occupancy of the compiled kernels, for grids that use `blocks_per_sm`.
            Without it 1 stands, which is always co-resident: enough for the defines, not for what
            is launched.
    """
    return _resolve(case, gpu, blocks_per_sm) if blocks_per_sm else _resolve_once(case, gpu)


@lru_cache(maxsize=256)
def _resolve_once(case: Case, gpu: GpuSpec) -> PlanOutcome:
    """Return the plan before a build, which every stage of a case asks for."""
    return _resolve(case, gpu, None)


def _resolve(case: Case, gpu: GpuSpec, blocks_per_sm: BlocksPerSm | None) -> PlanOutcome:
    if case.header is None:
        return PlanOutcome(plan=None, diagnostics=case.parsed.diagnostics)
    resolver = _Resolver(case, case.header, gpu, blocks_per_sm)
    plan = resolver.plan()
    diagnostics = tuple(resolver.findings.diagnostics)
    return PlanOutcome(plan=None if diagnostics else plan, diagnostics=diagnostics)


class _Resolver:
    """One resolution: the names that have values, and what was found wrong."""

    def __init__(
        self,
        case: Case,
        header: CandidateHeader,
        gpu: GpuSpec,
        blocks_per_sm: BlocksPerSm | None,
    ) -> None:
        self.findings = Findings()
        self._case = case
        self._header = header
        self._gpu = gpu
        self._blocks_per_sm = blocks_per_sm
        self._axes = case.workload.axes
        self._names: dict[str, int] = {**self._axes, "SM_COUNT": gpu.sm_count}

    def plan(self) -> LaunchPlan | None:
        header = self._header
        if not self._holds(header.where, "where"):
            message = f"the workload {self._case.workload.name} is outside the candidate's domain"
            place = f"where is {header.where!r}, and {_shown(self._axes, ' = ')}"
            self._error("where", f"{message}: {place}")
            return None
        variant = next(v for v in header.variants if self._holds(v.when, "when"))
        values = {**default_tune(header), **self._case.tune, **variant.set}
        self._check_tune(values)
        if self.findings.diagnostics:
            return None
        self._names.update(values)
        scratch = self._scratch()
        return LaunchPlan(
            workload=self._case.workload.name,
            axes=dict(self._axes),
            defines={**values, **{f"KOPT_{axis}": self._axes[axis] for axis in header.specialize}},
            launches=tuple(self._launches(variant)),
            scratch=tuple(scratch),
            tensor_maps=tuple(self._tensor_maps(scratch)),
            fast_math=header.flags.fast_math,
            max_registers=header.flags.max_registers,
        )

    def _error(self, key: str, message: str) -> None:
        self.findings.error(message, self._header.lines.get(key))

    def _holds(self, predicate: str, key: str) -> bool | None:
        """Return whether it is true; None, with a report, if it has no value."""
        try:
            return evaluate_predicate(predicate, self._names)
        except ExpressionError as error:
            self._error(key, f"{key}: {error} in {predicate!r}")
            return None

    def _check_tune(self, values: Mapping[str, int]) -> None:
        allowed = self._header.tune
        for name, value in self._case.tune.items():
            if name not in allowed:
                self._error("tune", f"unknown tune name {name!r}; {near_matches(name, allowed)}")
            elif value not in allowed[name]:
                listed = ", ".join(str(option) for option in allowed[name])
                self._error("tune", f"tune: {name} is {value}; declared are {listed}")
        if self.findings.diagnostics:
            return
        self._names.update(values)
        for condition in self._header.tune_where:
            if self._holds(condition, "tune_where") is False:
                where = f"{_shown(values)} in the workload {self._case.workload.name}"
                self._error("tune_where", f"tune_where: {condition!r} does not hold for {where}")

    def _report(self, what: str, line: int | None, mistakes: Iterable[str]) -> None:
        for mistake in mistakes:
            self.findings.error(f"{what}: {mistake}", line)

    @contextmanager
    def _reported(self, what: str, line: int | None) -> Generator[None]:
        """Report an expression without a value and leave out what needs it."""
        try:
            yield
        except ExpressionError as error:
            self.findings.error(f"{what}: {error}", line)

    def _values(self, texts: Iterable[str], what: str) -> tuple[int, ...]:
        return tuple(self._value(text, what) for text in texts)

    def _value(self, text: str, what: str) -> int:
        try:
            return evaluate_expression(text, self._names)
        except ExpressionError as error:
            raise ExpressionError(f"{what}: {error} in {text!r}") from error

    def _dim3(self, texts: tuple[str, ...], what: str) -> Dim3:
        x, y, z, *_ = (*self._values(texts, what), 1, 1)
        return x, y, z

    def _launches(self, variant: Variant) -> Iterator[Launch]:
        for index, template in enumerate(variant.launch, 1):
            what = f"launch {index} ({template.kernel})"
            with self._reported(what, template.line):
                launch = self._launch(template)
                self._report(what, template.line, launch_mistakes(launch, self._gpu))
                yield launch

    def _launch(self, template: LaunchTemplate) -> Launch:
        block = self._dim3(template.block, "block")
        smem = self._value(template.smem, "smem")
        self._names["blocks_per_sm"] = 1
        if self._blocks_per_sm and any("blocks_per_sm" in text for text in template.grid):
            resident = self._blocks_per_sm(template.kernel, prod(block), smem)
            self._names["blocks_per_sm"] = resident
        return Launch(
            kernel=template.kernel,
            grid=self._dim3(template.grid, "grid"),
            block=block,
            cluster=self._dim3(template.cluster, "cluster"),
            dynamic_smem_bytes=smem,
            cooperative=template.cooperative,
            pdl=template.pdl,
            carveout=template.carveout,
            arguments=tuple(self._argument(entry) for entry in template.args),
            line=template.line,
        )

    def _argument(self, entry: ArgumentTemplate) -> Argument:
        if entry.int_type is not None and entry.expression is not None:
            value = self._value(entry.expression, "args")
            if entry.int_type == "int32" and not _fits_int32(value):
                raise ExpressionError(f"args: {entry.expression} is {value}, which no int32 holds")
            return Argument(kind=entry.int_type, name=entry.expression, value=value)
        name = entry.name or ""
        if name in self._axes:
            value = self._axes[name]
            kind: ArgumentKind = "int32" if _fits_int32(value) else "int64"
            return Argument(kind=kind, name=name, value=value, is_axis=True)
        for scalar in self._case.problem.scalars_at(self._case.workload):
            if scalar.name == name:
                return Argument(kind=scalar.dtype, name=name, value=scalar.value)
        if any(buffer.name == name for buffer in self._header.scratch):
            return Argument(kind="scratch", name=name)
        if any(entry.name == name for entry in self._header.tensor_maps):
            return Argument(kind="tensor_map", name=name)
        return Argument(kind="tensor", name=name)

    def _scratch(self) -> list[Scratch]:
        buffers: list[Scratch] = []
        for template in self._header.scratch:
            what = f"scratch {template.name}"
            with self._reported(what, template.line):
                fields = template.model_dump(exclude={"line", "shape"})
                buffers.append(Scratch(**fields, shape=self._values(template.shape, "shape")))
                self._report(what, template.line, scratch_mistakes(buffers))
        return buffers

    def _tensor_maps(self, scratch: list[Scratch]) -> Iterator[TensorMap]:
        buffers = {b.name: MappedBuffer(b.dtype, b.shape) for b in scratch}
        for tensor in self._case.problem.tensors:
            buffers[tensor.name] = MappedBuffer(tensor.dtype, storage_shape(tensor, self._axes))
        for template in self._header.tensor_maps:
            buffer, what = buffers.get(template.tensor), f"tensor map {template.name}"
            if buffer is not None:  # else its own shape was reported
                with self._reported(what, template.line):
                    made = self._tensor_map(template, buffer)
                    self._report(what, template.line, tensor_map_mistakes(made, buffer))
                    yield made

    def _tensor_map(self, template: TensorMapTemplate, buffer: MappedBuffer) -> TensorMap:
        view = buffer.shape or (1,)
        if template.view is not None:
            view = self._values(template.view, "view")
        strides = template.element_strides or ("1",) * len(view)
        return TensorMap(
            **template.model_dump(exclude={"line", "view", "box", "element_strides"}),
            view=view,
            box=self._values(template.box, "box"),
            element_strides=self._values(strides, "element_strides"),
        )


def _shown(values: Mapping[str, int], sign: str = "=") -> str:
    return ", ".join(f"{name}{sign}{value}" for name, value in values.items())


def _fits_int32(value: int) -> bool:
    return -(2**31) <= value < 2**31
