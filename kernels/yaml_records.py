"""Records from YAML: a record's fields are the grammar, every mistake is told with its line.

pydantic reads the tree; what its fields may hold beside pydantic's own types is in `yaml_types.py`.
"""

from collections.abc import Collection
from collections.abc import Mapping as MappingOf
from dataclasses import dataclass
from typing import Any, TypeVar, cast, get_args

from pydantic import ValidationError

from kopt.config.near_matches import near_matches

from .record import Diagnostic, Record
from .strict_yaml import Mapping, Node, Scalar, Sequence
from .yaml_types import UNQUOTED, Entry, Mistake, Unlike

R = TypeVar("R", bound=Record)

_WANTED = {
    "bool_type": "true or false",
    "string_type": "text",
    "tuple_type": "a list",
    "dict_type": "a mapping",
}
"""What a field of pydantic's type wants, by the type of its error."""
_FOLLOWS = "default_factory_not_called"
"""A field that was left out and whose default needs one with a mistake: no mistake of its own."""
_ONE_OF = {"axes": "axis", "args": "argument"}


def read_record(
    record: type[R], root: Node, what: str, scope: object, given: MappingOf[str, object]
) -> R | tuple[Diagnostic, ...]:
    """Return `root` as a record, or one diagnostic for each mistake.

    Args:
        record: Its fields are the keys.
        root: The whole document.
        what: Names the document in messages.
        scope: The context of validation.
        given: Fields that are no keys.
    """
    data = plain(root)
    hidden = [key for key in given if isinstance(root, Mapping) and key in root.entries]
    if isinstance(data, dict):
        data = {**cast(dict[str, object], data), **given}
    place = _Place(root, (what,), root.line)
    mistakes: list[dict[str, Any]] = [{"type": "extra_forbidden", "loc": (key,)} for key in hidden]
    try:
        found = record.model_validate(data, context=scope)
        if not mistakes:
            return found
    except ValidationError as failed:
        found_there = cast(list[dict[str, Any]], failed.errors(include_url=False))
        mistakes += [one for one in found_there if one["type"] != _FOLLOWS]
    return tuple(
        _diagnostic(mistake, record, place)
        for mistake in mistakes
        if mistake["type"] != "too_short" or not _is_above(mistake["loc"], mistakes)
    )


def _is_above(steps: tuple[int | str, ...], mistakes: list[dict[str, Any]]) -> bool:
    """Whether a list is short because items of it have mistakes themselves."""
    count = len(steps)
    return any(len(one["loc"]) > count and one["loc"][:count] == steps for one in mistakes)


def plain(node: Node, line: int | None = None) -> object:
    """Return a tree as dicts, lists and values; `line` is that of the key before it."""
    if isinstance(node, Mapping):
        lines = node.key_lines
        entry = Entry({key: plain(value, lines[key]) for key, value in node.entries.items()})
        entry.line = line or node.line
        return entry
    return [plain(item) for item in node.items] if isinstance(node, Sequence) else node.value


@dataclass(frozen=True)
class _Place:
    """A node, the words that lead to it and the line of its key."""

    node: Node
    words: tuple[str, ...]
    line: int
    is_named: bool = False
    """Whether it is an entry whose key is its name."""

    def below(self, steps: tuple[int | str, ...], root: str) -> "_Place":
        """Return the place that `steps` lead to, as far as there is one."""
        if not steps:
            return self
        node, step = self.node, steps[0]
        if isinstance(node, Mapping) and step in node.entries:
            place = _Place(
                node.entries[str(step)], (*self.words, str(step)), node.key_lines[str(step)]
            )
        elif isinstance(node, Mapping) and isinstance(step, int):
            name = list(node.entries)[step]
            place = _Place(node.entries[name], self._one(name, root), node.key_lines[name], True)
        elif isinstance(node, Sequence) and isinstance(step, int):
            item = node.items[step]
            words = self._one(str(step + 1), root) if isinstance(item, Mapping) else self.words
            place = _Place(item, words, item.line)
        else:
            return self
        return place.below(steps[1:], root)

    def _one(self, label: str, root: str) -> tuple[str, ...]:
        *before, last = self.words
        name = _ONE_OF.get(last, last.removesuffix("s").replace("_", " "))
        return (*(word for word in before if word != root), f"{name} {label}")


def _diagnostic(error: dict[str, Any], record: type[Record], root: _Place) -> Diagnostic:
    kind, steps, context = error["type"], error["loc"], error.get("ctx", {})
    cause = context.get("error")
    place = root.below((*steps, *getattr(cause, "at", ())), root.words[0])
    line, hint = place.line, getattr(cause, "hint", None)
    if kind == "missing":
        message, line = f"the key {steps[-1]!r} is missing", place.node.line
    elif kind == "extra_forbidden":
        parent = root.below(steps[:-1], root.words[0])
        known = _keys(record, steps[:-1], parent.is_named)
        message = f"unknown key {steps[-1]!r}; {near_matches(steps[-1], known)}"
        if place.node == Scalar(None, "", place.node.line):
            hint = UNQUOTED
        place = parent
    elif isinstance(cause, Mistake) and not isinstance(cause, Unlike):
        message = str(cause)
    else:
        message, hint = _unlike(error, place, _keys(record, steps, place.is_named), hint)
    return Diagnostic(message=f"{': '.join(place.words)}: {message}", line=line, hint=hint)


def _unlike(
    error: dict[str, Any], place: _Place, keys: Collection[str], hint: str | None
) -> tuple[str, str | None]:
    kind, context = error["type"], error.get("ctx", {})
    if kind == "too_short":
        return f"the list is empty, at least {context['min_length']} is needed", None
    if kind == "too_long":
        return f"{context['actual_length']} entries, at most {context['max_length']}", None
    if kind == "literal_error":
        options = context["expected"].replace(" or ", ", ").replace("'", "")
        return f"expected one of {options}; got {described(place.node)}", None
    if kind == "model_type":
        return f"expected a mapping of {', '.join(keys)}; got {described(place.node)}", None
    if kind == "tuple_type":
        hint = f"write {place.words[-1]}: [...]"
    wanted = _WANTED.get(kind) or str(context["error"])
    return f"expected {wanted}, got {described(place.node)}", hint


def _keys(record: type[Record], steps: tuple[int | str, ...], is_named: bool) -> list[str]:
    """Return the keys of the record that `steps` lead to."""
    for step in steps:
        if step in record.model_fields:
            inner = _records(record.model_fields[str(step)].annotation)
            record = inner[0] if inner else record
    left_out = {"line", "lines", "folder", *(["name"] if is_named else [])}
    return [key for key in record.model_fields if key not in left_out]


def _records(annotation: object) -> list[type[Record]]:
    if isinstance(annotation, type) and issubclass(annotation, Record):
        return [annotation]
    return [found for inner in get_args(annotation) for found in _records(inner)]


def described(node: Node) -> str:
    """Return the value of `node` as messages show it."""
    if isinstance(node, Mapping):
        return "a mapping"
    if isinstance(node, Sequence):
        return "a list"
    return "nothing" if node.value is None else repr(node.text[:80])
