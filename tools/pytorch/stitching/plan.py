"""The header and the text of a stitched candidate."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

from kopt.config.errors import ToolError
from kopt.kernels.header import MAX_LAUNCHES, MAX_VARIANTS, LaunchTemplate, Variant
from kopt.tools.pytorch.graph import ValueType

from .buffers import PartScratch, ScratchLine, free_prefix, placed_values
from .part_code import PartCode, renamed_code
from .part_names import PartNames


@dataclass(frozen=True)
class Step:
    """A region: which part it is, and its wires."""

    part: str
    wires: Mapping[str, str]


@dataclass(frozen=True)
class StitchPlan:
    """What is stitched: parts by name, and the regions in order."""

    parts: Mapping[str, PartNames]
    steps: Sequence[Step]
    values: Mapping[str, ValueType]


def stitched_text(plan: StitchPlan) -> str:
    """Return the text of the candidate.

    Raises:
        ToolError: The parts cannot stand in one candidate; the message names part and cause.
    """
    codes = {name: _code(name, one) for name, one in plan.parts.items()}
    includes = dict.fromkeys(name for code in codes.values() for name in code.includes)
    texts = [_in_namespace(plan.parts[name], code) for name, code in codes.items()]
    head = "\n".join(_header(plan))
    return "\n\n".join([head, "\n".join(f"#include {one}" for one in includes), *texts]) + "\n"


def _code(name: str, part: PartNames) -> PartCode:
    try:
        return renamed_code(part.source, part.label, part.in_code())
    except ToolError as error:
        raise ToolError(f"the kernel of {name} cannot be stitched: {error}") from error


def _in_namespace(part: PartNames, code: PartCode) -> str:
    """Return a part's code in its namespace, its kernels named outside of it."""
    kernels = "\n".join(f"using {part.label}::{name};" for name in part.kernels.values())
    return f"namespace {part.label} {{\n\n{code.text}\n\n}}  // {part.label}\n\n{kernels}"


def flag_notes(plan: StitchPlan) -> tuple[str, ...]:
    """Return what parts lose: a candidate is compiled with one set of flags."""
    notes: list[str] = []
    exact = [n for n, one in plan.parts.items() if not one.header.flags.fast_math]
    fast = [n for n, one in plan.parts.items() if one.header.flags.fast_math]
    if exact and fast:
        notes.append(
            f"compiled without fast_math, as {exact[0]} asks: {', '.join(fast)} may be slower"
        )
    limit = _registers(plan)
    others = [n for n, one in plan.parts.items() if one.header.flags.max_registers != limit]
    if limit is not None and others:
        notes.append(
            f"compiled with max_registers {limit} for all kernels: {', '.join(others)} had"
            " another limit or none"
        )
    return tuple(notes)


def _registers(plan: StitchPlan) -> int | None:
    limits = [one.header.flags.max_registers for one in plan.parts.values()]
    return min((one for one in limits if one is not None), default=None)


def _header(plan: StitchPlan) -> Iterator[str]:
    parts = plan.parts.values()
    families = list(dict.fromkeys(name for one in parts for name in one.header.family))
    yield "/* kopt: 1"
    yield f"family: [{', '.join(families)}]"
    yield f'note: "stitched from {len(plan.parts)} parts in {len(plan.steps)} regions"'
    where = _conditions(one.expression(one.header.where) for one in parts)
    if where != "true":
        yield f"where: {json.dumps(where)}"
    yield from _tune(plan)
    axes = [axis for one in parts for axis in one.header.specialize if axis not in one.numbers]
    if axes:
        yield f"specialize: [{', '.join(dict.fromkeys(axes))}]"
    yield from _flags(plan)
    regions, lines = _regions(plan)
    if lines:
        yield "scratch:"
        yield from (line.text() for line in lines)
    maps = [text for region in regions for text in region.tensor_maps()]
    if maps:
        yield "tensor_maps:"
        yield from maps
    yield from _launches(plan, regions)
    yield "*/"


def _conditions(texts: Iterator[str] | Sequence[str]) -> str:
    kept = dict.fromkeys(text for text in texts if text != "true")
    if len(kept) < 2:
        return next(iter(kept), "true")
    return " and ".join(f"({text})" for text in kept)


def _tune(plan: StitchPlan) -> Iterator[str]:
    """Yield the tune values that the parts were chosen with, one each: nothing is swept again."""
    values = {
        part.tune[name]: choices[0]
        for part in plan.parts.values()
        for name, choices in part.header.tune.items()
    }
    if values:
        yield f"tune: {{{', '.join(f'{name}: [{value}]' for name, value in values.items())}}}"
    conditions = [
        json.dumps(part.expression(text))
        for part in plan.parts.values()
        for text in part.header.tune_where
    ]
    if conditions:
        yield f"tune_where: [{', '.join(dict.fromkeys(conditions))}]"


def _flags(plan: StitchPlan) -> Iterator[str]:
    flags = [one.header.flags for one in plan.parts.values()]
    texts = [] if all(one.fast_math for one in flags) else ["fast_math: false"]
    limit = _registers(plan)
    texts += [] if limit is None else [f"max_registers: {limit}"]
    if texts:
        yield f"flags: {{{', '.join(texts)}}}"


@dataclass(frozen=True)
class _Region:
    """A step with the buffers of the whole by the names in its part."""

    number: int
    part: PartNames
    buffers: Mapping[str, str]

    @property
    def named(self) -> dict[str, str]:
        """Buffers and tensor maps of the whole by the names in the part."""
        return {
            **self.buffers,
            **{one.name: f"r{self.number}_{one.name}" for one in self.part.header.tensor_maps},
        }

    def tensor_maps(self) -> Iterator[str]:
        """Yield the region's lines of `tensor_maps`."""
        scratch = {one.name: one.shape for one in self.part.header.scratch}
        shapes = {tensor.name: tensor.shape for tensor in self.part.problem.tensors} | scratch
        for one in self.part.header.tensor_maps:
            fields = {
                "view": one.view or shapes[one.tensor],
                "box": one.box,
                "element_strides": one.element_strides or (),
            }
            texts = [f"tensor: {self.buffers[one.tensor]}"]
            texts += [
                f"{key}: {_quoted(self.part, value)}" for key, value in fields.items() if value
            ]
            texts += [f"swizzle: {one.swizzle}", f"interleave: {one.interleave}"]
            texts += [f"l2: {one.l2}", f"fill: {one.fill}"]
            yield f"  {self.named[one.name]}: {{{', '.join(texts)}}}"

    def launch(self, one: LaunchTemplate, *, is_first: bool) -> str:
        """Return a launch as a line of the header.

        The first of a region waits for all before it: what it does before it waits by itself was
        proven beside its own part's memory only.
        """
        part = self.part
        texts = [f"kernel: {part.kernels[one.kernel]}"]
        texts += [f"grid: {_quoted(part, one.grid)}", f"block: {_quoted(part, one.block)}"]
        if one.smem != "0":
            texts.append(f"smem: {_quoted(part, (one.smem,))}")
        if one.cluster != ("1",):
            texts.append(f"cluster: {_quoted(part, one.cluster)}")
        texts += ["pdl: true"] if one.pdl and not is_first else []
        texts += ["cooperative: true"] if one.cooperative else []
        texts += [f"carveout: {one.carveout}"] if one.carveout != "default" else []
        arguments = [
            part.argument(given, (one.kernel, place), self.named)
            for place, given in enumerate(one.args)
        ]
        texts.append(f"args: [{', '.join(arguments)}]")
        return f"  - {{{', '.join(texts)}}}"


def _quoted(part: PartNames, texts: Sequence[str]) -> str:
    return json.dumps(", ".join(part.expression(text) for text in texts))


def _regions(plan: StitchPlan) -> tuple[list[_Region], list[ScratchLine]]:
    """Return the regions with their buffers, and the scratch of the whole."""
    whole = next(iter(plan.parts.values())).whole
    places, lines = placed_values(whole, plan.values, [one.wires for one in plan.steps])
    pool = PartScratch(free_prefix("work", whole))
    regions: list[_Region] = []
    for number, step in enumerate(plan.steps, 1):
        part = plan.parts[step.part]
        own = [(one, _elements(part, one.shape)) for one in part.header.scratch]
        buffers = {name: places.get(wire, wire) for name, wire in step.wires.items()}
        regions.append(_Region(number, part, {**buffers, **pool.place(own)}))
    return regions, [*lines, *pool.lines()]


def _elements(part: PartNames, shape: Sequence[str]) -> str:
    texts = [part.expression(text) for text in shape]
    return texts[0] if len(texts) == 1 else " * ".join(f"({text})" for text in texts)


def _launches(plan: StitchPlan, regions: Sequence[_Region]) -> Iterator[str]:
    """Yield the launches; where parts have variants, those of every combination."""
    names = list(plan.parts)
    every = [plan.parts[name].header.variants for name in names]
    count = prod(map(len, every))
    if count > MAX_VARIANTS:
        several = [f"{n} ({len(v)})" for n, v in zip(names, every, strict=True) if len(v) > 1]
        raise ToolError(
            f"the variants of {', '.join(several)} have {count} combinations; a candidate has at"
            f" most {MAX_VARIANTS} variants: stitch kernels with fewer"
        )
    if count == 1:
        yield "launch:"
        yield from _of_variants(regions, dict(zip(names, (v[0] for v in every), strict=True)), plan)
        return
    yield "variants:"
    for chosen in product(*every):  # the first that holds has the first that holds of each part
        variants = dict(zip(names, chosen, strict=True))
        parts = [(plan.parts[name], one) for name, one in variants.items()]
        when = _conditions([part.expression(one.when) for part, one in parts])
        fixed = {part.tune[n]: value for part, one in parts for n, value in one.set.items()}
        yield f"  - when: {json.dumps(when)}"
        if fixed:
            yield f"    set: {{{', '.join(f'{n}: {value}' for n, value in fixed.items())}}}"
        yield "    launch:"
        yield from (f"    {line}" for line in _of_variants(regions, variants, plan))


def _of_variants(
    regions: Sequence[_Region], variants: Mapping[str, Variant], plan: StitchPlan
) -> list[str]:
    lines = [
        region.launch(one, is_first=place == 0)
        for region, step in zip(regions, plan.steps, strict=True)
        for place, one in enumerate(variants[step.part].launch)
    ]
    if len(lines) > MAX_LAUNCHES:
        raise ToolError(
            f"the parts have {len(lines)} launches; a candidate has at most {MAX_LAUNCHES}"
        )
    return lines
