"""Numbers for a header: the launch plan of one workload and one choice of tune values.

Limits that follow from the header and the GPU alone are checked here (`plan_limits.py`);
what needs the cubin is `plan_check.py`'s.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache

from kopt.config.gpu_specs import GpuSpec
from kopt.config.near_matches import near_matches

from .case import Case
from .domain import default_tune
from .expressions import ExpressionError, evaluate_expression, evaluate_predicate
from .header import ArgumentTemplate, CandidateHeader, LaunchTemplate, TensorMapTemplate, Variant
from .plan import Argument, Dim3, Launch, LaunchPlan, PlanOutcome, Scratch, TensorMap
from .plan_limits import MappedBuffer, check_launch, check_scratch, check_tensor_map
from .problem import storage_shape
from .record import Findings

BlocksPerSm = Callable[[str, int, int], int]
"""(kernel, threads per block, dynamic shared memory in bytes) -> co-resident blocks on one SM."""

_INT32 = (-(2**31), 2**31 - 1)


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
        if not self._holds(self._header.where, "where"):
            message = f"the workload {self._case.workload.name} is outside the candidate's domain"
            shape = ", ".join(f"{axis} = {value}" for axis, value in self._axes.items())
            place = f"where is {self._header.where!r}, and {shape}"
            self.findings.error(f"{message}: {place}", self._line("where"))
            return None
        variant = next(v for v in self._header.variants if self._holds(v.when, "when"))
        values = self._tune_values(self._case.tune, variant)
        if self.findings.diagnostics:
            return None
        self._names.update(values)
        scratch = self._scratch()
        launches = (
            self._launch(template, f"launch {index} ({template.kernel})")
            for index, template in enumerate(variant.launch, 1)
        )
        return LaunchPlan(
            workload=self._case.workload.name,
            axes=dict(self._axes),
            defines={
                **values,
                **{f"KOPT_{axis}": self._axes[axis] for axis in self._header.specialize},
            },
            launches=tuple(launch for launch in launches if launch is not None),
            scratch=scratch,
            tensor_maps=self._tensor_maps(scratch),
            fast_math=self._header.flags.fast_math,
            max_registers=self._header.flags.max_registers,
        )

    def _line(self, key: str) -> int | None:
        return self._header.lines.get(key)

    def _holds(self, predicate: str, key: str) -> bool:
        try:
            return evaluate_predicate(predicate, self._names)
        except ExpressionError as error:
            self.findings.error(f"{key}: {error} in {predicate!r}", self._line(key))
            return False

    def _tune_values(self, tune: Mapping[str, int], variant: Variant) -> dict[str, int]:
        allowed = self._header.tune
        for name, value in tune.items():
            if name not in allowed:
                message = f"unknown tune name {name!r}; {near_matches(name, allowed)}"
                self.findings.error(message, self._line("tune"))
            elif value not in allowed[name]:
                listed = ", ".join(str(option) for option in allowed[name])
                message = f"tune: {name} is {value}; declared are {listed}"
                self.findings.error(message, self._line("tune"))
        values = {**default_tune(self._header), **tune, **variant.set}
        if self.findings.diagnostics:
            return values
        names = {**self._axes, **values}
        for condition in self._header.tune_where:
            try:
                holds = evaluate_predicate(condition, names)
            except ExpressionError as error:
                message = f"tune_where: {error} in {condition!r}"
                self.findings.error(message, self._line("tune_where"))
                continue
            if not holds:
                shown = ", ".join(f"{name}={value}" for name, value in values.items())
                message = f"tune_where: {condition!r} does not hold for {shown}"
                where = f" in the workload {self._case.workload.name}"
                self.findings.error(message + where, self._line("tune_where"))
        return values

    def _value(self, text: str, what: str, line: int | None) -> int | None:
        try:
            return evaluate_expression(text, self._names)
        except ExpressionError as error:
            self.findings.error(f"{what}: {error} in {text!r}", line)
            return None

    def _values(
        self, texts: tuple[str, ...], what: str, line: int | None
    ) -> tuple[int, ...] | None:
        values = [self._value(text, what, line) for text in texts]
        known = tuple(value for value in values if value is not None)
        return known if len(known) == len(values) else None

    def _dim3(self, texts: tuple[str, ...], what: str, line: int | None) -> Dim3 | None:
        values = self._values(texts, what, line)
        if values is None:
            return None
        x, y, z, *_ = (*values, 1, 1)
        return x, y, z

    def _launch(self, template: LaunchTemplate, what: str) -> Launch | None:
        line = template.line
        block = self._dim3(template.block, f"{what}: block", line)
        cluster = self._dim3(template.cluster, f"{what}: cluster", line)
        smem = self._value(template.smem, f"{what}: smem", line)
        arguments = [self._argument(entry, f"{what}: args", line) for entry in template.args]
        if block is None or cluster is None or smem is None:
            return None
        if self._blocks_per_sm is None:
            self._names["blocks_per_sm"] = 1
        elif any("blocks_per_sm" in text for text in template.grid):
            threads = block[0] * block[1] * block[2]
            resident = self._blocks_per_sm(template.kernel, threads, smem)
            self._names["blocks_per_sm"] = resident
        grid = self._dim3(template.grid, f"{what}: grid", line)
        if grid is None:
            return None
        launch = Launch(
            kernel=template.kernel,
            grid=grid,
            block=block,
            cluster=cluster,
            dynamic_smem_bytes=smem,
            cooperative=template.cooperative,
            pdl=template.pdl,
            carveout=template.carveout,
            arguments=tuple(argument for argument in arguments if argument is not None),
            line=line,
        )
        check_launch(launch, what, self._gpu, self.findings)
        return launch

    def _argument(self, entry: ArgumentTemplate, what: str, line: int | None) -> Argument | None:
        if entry.int_type is not None and entry.expression is not None:
            value = self._value(entry.expression, what, line)
            if value is not None and entry.int_type == "int32" and not _fits_int32(value):
                message = f"{what}: {entry.expression} is {value}, which no int32 holds"
                self.findings.error(message, line)
            return Argument(kind=entry.int_type, name=entry.expression, value=value)
        name = entry.name or ""
        if name in self._axes:
            value = self._axes[name]
            return Argument(
                kind="int32" if _fits_int32(value) else "int64",
                name=name,
                value=value,
                is_axis=True,
            )
        for scalar in self._case.problem.scalars:
            if scalar.name == name:
                return Argument(kind=scalar.dtype, name=name, value=scalar.value)
        if any(buffer.name == name for buffer in self._header.scratch):
            return Argument(kind="scratch", name=name)
        if any(entry.name == name for entry in self._header.tensor_maps):
            return Argument(kind="tensor_map", name=name)
        return Argument(kind="tensor", name=name)

    def _scratch(self) -> tuple[Scratch, ...]:
        buffers: list[Scratch] = []
        for template in self._header.scratch:
            what = f"scratch {template.name}: shape"
            shape = self._values(template.shape, what, template.line)
            if shape is not None:
                buffers.append(
                    Scratch(
                        name=template.name, dtype=template.dtype, shape=shape, init=template.init
                    )
                )
                check_scratch(buffers, template.line, self.findings)
        return tuple(buffers)

    def _tensor_maps(self, scratch: tuple[Scratch, ...]) -> tuple[TensorMap, ...]:
        buffers = {b.name: MappedBuffer(b.dtype, b.shape) for b in scratch}
        for tensor in self._case.problem.tensors:
            buffers[tensor.name] = MappedBuffer(tensor.dtype, storage_shape(tensor, self._axes))
        maps: list[TensorMap] = []
        for template in self._header.tensor_maps:
            buffer = buffers.get(template.tensor)
            made = None if buffer is None else self._tensor_map(template, buffer)
            if made is not None and buffer is not None:
                check_tensor_map(made, buffer, template.line, self.findings)
                maps.append(made)
        return tuple(maps)

    def _tensor_map(self, template: TensorMapTemplate, buffer: MappedBuffer) -> TensorMap | None:
        what = f"tensor map {template.name}"
        line = template.line
        view = buffer.shape or (1,)
        if template.view is not None:
            given = self._values(template.view, f"{what}: view", line)
            if given is None:
                return None
            view = given
        box = self._values(template.box, f"{what}: box", line)
        strides = self._values(
            template.element_strides or ("1",) * len(view), f"{what}: element_strides", line
        )
        if box is None or strides is None:
            return None
        return TensorMap(
            name=template.name,
            tensor=template.tensor,
            view=view,
            box=box,
            element_strides=strides,
            swizzle=template.swizzle,
            interleave=template.interleave,
            l2=template.l2,
            fill=template.fill,
        )


def _fits_int32(value: int) -> bool:
    return _INT32[0] <= value <= _INT32[1]
