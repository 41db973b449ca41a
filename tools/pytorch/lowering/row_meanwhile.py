"""What a kernel keeps of the work that it does while partial results of a row are under way."""

from dataclasses import dataclass

from .reduction import Reduction
from .row_body import RowBody
from .row_early import EarlyWork
from .values import Index

_HERE = "[KEEPS ? i : 0]"


@dataclass
class Meanwhile:
    """Arrays of what was computed early: written in one loop over packs, read in later ones."""

    body: RowBody
    work: EarlyWork
    is_done: bool = False
    """Whether the loop that writes them is written."""

    def declare(self) -> None:
        """Write the declarations."""
        for number, results in enumerate(self.work.groups, 1):
            struct = _struct(results[0].reduction)
            self.body.line(f"{struct} group{number}_kept[KEEPS ? ITEMS : 1];")
        for number, _ in enumerate(self.work.products, 1):
            self.body.line(f"float early{number}_kept[KEEPS ? ITEMS : 1][VEC];")

    def keep_group(self, number: int, state: str) -> None:
        """Write the statement that keeps the state of a group."""
        self.body.line(f"group{number}_kept{_HERE} = {state};")

    def kept_group(self, reduction: Reduction) -> str:
        """Return where the state of a group is kept, with its type; "" where it is not."""
        reductions = [results[0].reduction for results in self.work.groups]
        if not self.is_done or reduction not in reductions:
            return ""
        return f"group{reductions.index(reduction) + 1}_kept{_HERE}"

    def keep_products(self, index: Index) -> None:
        """Write the statements that compute and keep the elements at `index`."""
        for number, one in enumerate(self.work.products, 1):
            name = one.at(self.body, index)
            self.body.line(f"early{number}_kept{_HERE}[v] = {name};")

    def recall_products(self, index: Index) -> None:
        """Name the elements that are kept, before anything computes them again."""
        for number, one in enumerate(self.work.products if self.is_done else (), 1):
            head = f"const float {one.at(self.body, index)} = "
            line = self.body.lines[-1]
            if line.lstrip().startswith(head):  # else another one has named it, as a part of it
                kept = f"KEEPS ? early{number}_kept{_HERE}[v] : "
                self.body.lines[-1] = line.replace(head, head + kept)


def _struct(reduction: Reduction) -> str:
    return f"op::{reduction.cheapest_fold.state}<{reduction.element}>"
