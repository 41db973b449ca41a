"""CUDA sources as chunks: one function, struct or group of declarations each, with its comment.

A scanner over blanked text, not a parser: comments, strings and directives become blanks of the
same length, `#else` branches too, and what remains is cut at braces and semicolons outside of any.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, replace

from kopt.tools.docs.records import Kind

from .units import CPP_COMMENT, Unit

_OPAQUE = re.compile(
    r"//[^\n]*|/\*.*?(?:\*/|\Z)|\"(?:\\.|[^\"\\\n])*+(?P<closing>\"?)"
    r"|'(?:\\.|[^'\\\n]){1,4}'",
    re.DOTALL,
)
"""A string without an end is matched too: tried again at each escaped quote it took minutes."""
_DIRECTIVE = re.compile(r"[ \t]*#[ \t]*(\w*)")
_DIRECTIVE_LINE = re.compile(r"^[ \t]*#[ \t]*(\w+)[^\n]*", re.MULTILINE)
_TEMPLATE = re.compile(r"^\s*template\s*<[^{};]*?>\s*(?=\w)", re.MULTILINE)
_TRANSPARENT = re.compile(
    r"\s*(?:[A-Z][A-Z0-9_]+\s+)*(?:inline\s+)?(?:namespace(?:\s+(?P<name>[\w:]+))?|extern)\s*"
)
_OTHER_DEVICE = re.compile(
    r"\s*#\s*if(?:def|\s+defined)?[\s(]*(?:USE_ROCM|__HIP_PLATFORM_AMD__|__HIPCC__)[\s)]*$"
)
"""A condition whose first branch is no CUDA: the second is followed."""
_BRANCH_END = re.compile(r"\s*#(?:else|elif|endif)")
_FARTHEST_ENDIF = 4000
"""Characters of other branches that are taken along with an item that is all of the first."""
_NOT_A_NAME = {"__launch_bounds__", "__attribute__", "alignas", "__align__", "decltype", "noexcept"}
_LONGEST_HEAD = 4000
_CALL = re.compile(r"(operator\s*(?:\(\s*\)|[^\s\w(]+)|\w+)\s*\(")
_AGGREGATE = re.compile(
    r"\b(?:struct|class|union|enum(?:\s+class)?)\s+(?:(?:alignas|__align__)\s*\([^)]*\)\s*)?(\w+)"
)
_DECLARED = re.compile(r"(\w+)\s*(?:\[[^\]]*\]\s*)*(?:=|$)")


def ends_in_comment(text: str) -> bool:
    """Say whether a comment of `text` is never closed: then it is no C++."""
    last = text.rfind("/*")
    if last < 0 or text.find("*/", last + 2) >= 0:
        return False
    opaque = (match[0] for match in _OPAQUE.finditer(text))
    return any(one.startswith("/*") and (len(one) < 4 or one[-2:] != "*/") for one in opaque)


@dataclass
class _Scanner:
    text: str
    blanked: str
    scope: list[str | None]

    def items(self) -> Iterator[tuple[int, int]]:
        """Yield (begin, end) of the items; `scope` is that of the item just yielded."""
        begin, at, body_at, depth, parentheses = 0, 0, 0, 0, 0
        for match in re.finditer(r"[(){};]", self.blanked):
            at, mark = match.start(), match[0]
            is_at_margin = at == 0 or self.blanked[at - 1] == "\n"
            if mark in "()":
                parentheses += 0 if depth else 1 if mark == "(" else -min(parentheses, 1)
            elif parentheses and not (mark == "}" and is_at_margin):
                pass  # a default argument `Shape{}`; a brace at the margin ends what was not closed
            elif depth:
                parentheses = 0
                depth += {"{": 1, "}": -1}.get(mark, 0)
                if depth == 0 and not self._goes_on(begin, body_at):
                    yield begin, at + 1
                    begin = at + 1
            elif mark == "{":
                opening = _TRANSPARENT.fullmatch(self.blanked[begin:at])
                if opening is not None:
                    self.scope.append(opening["name"])
                    begin = at + 1
                else:
                    body_at, depth = at, 1
            elif mark == "}":
                if self.scope:
                    self.scope.pop()
                begin = at + 1
            else:
                yield begin, at + 1
                begin = at + 1

    def _goes_on(self, begin: int, body_at: int) -> bool:
        """Say whether `};`, `} name;` or `} = ...;` ends the item only later."""
        head = _TEMPLATE.sub("", self.blanked[begin:body_at][:_LONGEST_HEAD])
        return bool(_AGGREGATE.search(head)) or "=" in head.rpartition(")")[2]


def code_items(text: str) -> list[Unit]:
    """Return the items of a source in order, each from its leading comment to its last line."""
    scanner = _Scanner(text, blanked(text), [])
    breaks = [at for at, letter in enumerate(text) if letter == "\n"]
    items: list[Unit] = []
    for begin, end in scanner.items():
        code = scanner.blanked[begin:end]
        begin += len(code) - len(code.lstrip())
        code = code.strip()
        if code in ("", ";"):
            continue
        kind, symbol = _named(code)
        begin, end = _whole_conditional(text, text.rfind("\n", 0, begin) + 1, end)
        start = _comment_start(text, begin)
        items.append(
            Unit(
                kind=kind,
                symbol=symbol,
                scope=tuple(name for name in scanner.scope if name),
                start_line=bisect_left(breaks, start) + 1,
                end_line=bisect_left(breaks, end - 1) + 1,
                comment=comment_text(text[start:begin]),
            )
        )
    return _declarations_joined(items)


def head_lines(text: str) -> int:
    """Return how many lines the comments at the top of `text` take; 0 if it has none."""
    lines = text.split("\n")
    count, in_block = 0, False
    for number, line in enumerate(lines, start=1):
        stripped = line.strip()
        if in_block or stripped.startswith("/*"):
            in_block = "*/" not in stripped
            count = number
        elif stripped.startswith("//"):
            count = number
        elif stripped:
            break
    return count


def comment_text(text: str) -> str:
    """Return the words of the comments in `text`."""
    words: list[str] = []
    for match in CPP_COMMENT.finditer(text):
        comment = match[0]
        comment = comment[2:].removesuffix("*/") if comment.startswith("/*") else comment[2:]
        words += comment.split()
    return " ".join(words)


def blanked(text: str) -> str:
    """Return `text` with everything that is no code as blanks; offsets stay."""
    text = _OPAQUE.sub(_as_blanks, text)
    lines, continued = text.split("\n"), False
    dropped, others = [False], [True]
    for at, line in enumerate(lines):
        directive = _DIRECTIVE.match(line)
        if directive and not continued:
            _follow(line, directive[1], dropped, others)
        if directive or continued or dropped[-1]:
            lines[at] = " " * len(line)
        continued = line.endswith("\\") and (directive is not None or continued)
    return "\n".join(lines)


def _as_blanks(match: re.Match[str]) -> str:
    """Return blanks for `match`; of a string without an end only for the comments in it."""
    if match["closing"] == "":
        return CPP_COMMENT.sub(_spaces, match[0])
    return _spaces(match)


def _spaces(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", match[0])


def _follow(line: str, directive: str, dropped: list[bool], others: list[bool]) -> None:
    """Keep the stacks of conditionals: whether this branch is passed, and whether the others are.

    The first branch is followed, unless it is for other devices.
    """
    if directive.startswith("if"):
        is_other = _OTHER_DEVICE.match(line) is not None
        others.append(dropped[-1] or not is_other)
        dropped.append(dropped[-1] or is_other)
    elif directive.startswith("el"):
        dropped[-1], others[-1] = others[-1], True
    elif directive == "endif" and len(dropped) > 1:
        dropped.pop()
        others.pop()


def _head(code: str) -> str:
    """Return what stands before the first brace, without template parameters."""
    return _TEMPLATE.sub("", code.split("{")[0][:_LONGEST_HEAD])


def _named(code: str) -> tuple[Kind, str]:
    head = _head(code)
    aggregate = _AGGREGATE.search(head)
    if aggregate and "(" not in head[aggregate.end() :]:
        return "struct", aggregate[1]
    name = next((m[1] for m in _CALL.finditer(head) if m[1] not in _NOT_A_NAME), None)
    is_function = name is not None and "=" not in head.split("(")[0]
    if "{" in code and is_function and name is not None:
        if "__global__" in head:
            return "kernel", name
        return ("device" if "__device__" in head else "host"), name
    declared = _DECLARED.search(head.rstrip("; \n")) if not is_function else None
    return "decl", declared[1] if declared else name or next(iter(head.split()), "")


def _whole_conditional(text: str, begin: int, end: int) -> tuple[int, int]:
    """Return the item from its `#if` to its `#endif` if it is all of the first branch."""
    last = begin - 1
    while last >= 0 and text[last].isspace():
        last -= 1
    above = text.rfind("\n", 0, last + 1) + 1
    if not text.startswith("#if", above, begin) or not _BRANCH_END.match(text, end):
        return begin, end
    depth = 1
    for match in _DIRECTIVE_LINE.finditer(text, end):
        depth += 1 if match[1].startswith("if") else -1 if match[1] == "endif" else 0
        if depth == 0 and match.end() - end < _FARTHEST_ENDIF:
            return above, match.end()
        if depth == 0:
            break
    return begin, end


def _comment_start(text: str, begin: int) -> int:
    """Return where the comment right above `begin` starts; `begin` if a blank line is between."""
    start = text.rfind("\n", 0, begin) + 1
    in_block = False
    while start > 0:
        above = text.rfind("\n", 0, start - 1) + 1
        line = text[above : start - 1].strip()
        if in_block or (line.endswith("*/") and not line.startswith("//")):
            in_block = not line.startswith("/*")
        elif not line.startswith("//"):
            break
        start = above
    return start


def _declarations_joined(items: list[Unit]) -> list[Unit]:
    """Return `items` with neighboring declarations as one item each."""
    joined: list[Unit] = []
    for item in items:
        last = joined[-1] if joined else None
        near = last is not None and item.start_line - last.end_line <= 1
        if last is not None and near and last.kind == item.kind == "decl":
            joined[-1] = replace(
                last,
                symbol=f"{last.symbol}, {item.symbol}",
                end_line=item.end_line,
                comment=f"{last.comment} {item.comment}".strip(),
            )
        else:
            joined.append(item)
    return joined
