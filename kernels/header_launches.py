"""The launches of a candidate's header, alone or in variants by shape.

Each reader turns YAML into templates and reports mistakes into `Findings` of the scope.
"""

from kopt.config.near_matches import near_matches

from .header import ArgumentTemplate, LaunchTemplate, Variant
from .header_declarations import INT32, Scope
from .strict_yaml import Mapping, Node, Scalar, Sequence
from .yaml_fields import Fields, integer_of, keys_of, text_of

MAX_LAUNCHES = 16
MAX_VARIANTS = 32
MAX_ARGUMENTS = 64

_GRID_NAMES = frozenset({"blocks_per_sm"})


def read_variants(fields: Fields, scope: Scope) -> tuple[Variant, ...]:
    """Return the variants; a single `launch` list becomes one whose `when` is "true"."""
    if ("launch" in fields) == ("variants" in fields):
        got = "both" if "launch" in fields else "neither"
        message = f"header: exactly one of launch and variants is needed, got {got}"
        scope.findings.error(message, fields.line_of("variants"))
        return ()
    if "launch" in fields:
        launches = _read_launches(fields, scope)
        return (Variant(when="true", launch=launches, line=fields.line_of("launch")),)
    nodes = fields.items("variants")
    if not 1 <= len(nodes) <= MAX_VARIANTS:
        fields.error("variants", f"expected 1 to {MAX_VARIANTS} variants, got {len(nodes)}")
    variants = tuple(
        _read_variant(
            Fields(node, f"variant {index}", ("when", "set", "launch"), scope.findings), scope
        )
        for index, node in enumerate(nodes, 1)
    )
    for index, variant in enumerate(variants, 1):
        is_last = index == len(variants)
        if is_last != (variant.when.strip() == "true"):
            wanted = (
                "the last variant needs when: true" if is_last else "variants after it are dead"
            )
            shown = f"variant {index}: when is {variant.when[:80]!r}"
            scope.findings.error(f"{shown}; {wanted}", variant.line)
    return variants


def _read_variant(fields: Fields, scope: Scope) -> Variant:
    fields.require("when", "launch")
    values: dict[str, int] = {}
    for name, (node, line) in fields.entries("set").items():
        if name not in scope.tune:
            message = f"{fields.what}: set: unknown tune name {name!r}; "
            scope.findings.error(message + near_matches(name, scope.tune), line)
        value = integer_of(node, f"{fields.what}: set: {name}", INT32, scope.findings)
        if value is not None:
            values[name] = value
    when = fields.predicate("when", scope.axes)
    return Variant(when=when, set=values, launch=_read_launches(fields, scope), line=fields.line)


def _read_launches(fields: Fields, scope: Scope) -> tuple[LaunchTemplate, ...]:
    nodes = fields.items("launch")
    is_list = isinstance(fields.node("launch"), Sequence)
    if is_list and not 1 <= len(nodes) <= MAX_LAUNCHES:
        fields.error("launch", f"expected 1 to {MAX_LAUNCHES} launches, got {len(nodes)}")
    return tuple(
        _read_launch(
            Fields(node, f"launch {index}", keys_of(LaunchTemplate), scope.findings), scope
        )
        for index, node in enumerate(nodes, 1)
    )


def _read_launch(fields: Fields, scope: Scope) -> LaunchTemplate:
    fields.require("kernel", "grid", "block", "args")
    cooperative = fields.boolean("cooperative", default=False)
    pdl = fields.boolean("pdl", default=False)
    if cooperative and pdl:
        fields.error("cooperative", "a cooperative launch excludes pdl; keep one of them")
    nodes = fields.items("args")
    if len(nodes) > MAX_ARGUMENTS:
        fields.error("args", f"{len(nodes)} arguments, at most {MAX_ARGUMENTS} are allowed")
    arguments = (_read_argument(node, fields.what, scope) for node in nodes)
    return LaunchTemplate(
        kernel=fields.identifier("kernel"),
        grid=fields.expressions("grid", scope.values | _GRID_NAMES, 3),
        block=fields.expressions("block", scope.values, 3),
        cluster=fields.expressions("cluster", scope.values, 3),
        smem=fields.expression("smem", scope.values),
        cooperative=cooperative,
        pdl=pdl,
        carveout=fields.choice("carveout", ("default", "max_shared", "max_l1"), "default"),
        args=tuple(argument for argument in arguments if argument is not None),
        line=fields.line,
    )


def _read_argument(node: Node, what: str, scope: Scope) -> ArgumentTemplate | None:
    what = f"{what}: args"
    if isinstance(node, Mapping):
        return _read_typed_argument(node, what, scope)
    if isinstance(node, Scalar) and isinstance(node.value, int):
        message = f"{what}: a number needs its type: {{int32: {node.text[:20]}}}"
        scope.findings.error(message, node.line)
        return None
    name = text_of(node, what, scope.findings)
    known = scope.arguments()
    if name is None or name in known:
        return ArgumentTemplate(name=name) if name is not None else None
    if name in scope.values:
        reason = f"{name!r} is no argument by name; write {{int32: {name}}}"
    else:
        reason = f"unknown argument {name[:80]!r}; {near_matches(name, known)}"
    scope.findings.error(f"{what}: {reason}", node.line)
    return None


def _read_typed_argument(node: Mapping, what: str, scope: Scope) -> ArgumentTemplate | None:
    fields = Fields(node, what, ("int32", "int64"), scope.findings)
    for int_type in ("int32", "int64"):
        if int_type in fields and len(node.entries) == 1:
            expression = fields.expression(int_type, scope.values)
            return ArgumentTemplate(int_type=int_type, expression=expression)
    if "int32" in fields or not node.entries:
        scope.findings.error(f"{what}: expected {{int32: expr}} or {{int64: expr}}", node.line)
    return None
