"""The buffer sets of a timing session in device memory: filled, restored, read back and checked.

Both sides of a comparison work on the same sets. `l2_rotation.py` decides where they lie;
`replay_graphs.py` captures what `restore` enqueues. Nothing here launches a kernel.
"""

from collections import defaultdict
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np
import numpy.typing as npt

from kopt.config.errors import InfraError
from kopt.kernels.dtypes import dtype_size_bytes
from kopt.kernels.problem import storage_shape
from kopt.kernels.set_contents import call_work, distinct_contents, inputs_of_set
from kopt.kernels.wide_work import fill_wide
from kopt.tools.devices.device import Arrays
from kopt.tools.gpu.messages import BufferDamage, OpenTimingRequest

from . import driver
from .buffer_layout import Bytes, paint_guards, side_plan
from .context import WorkerContext
from .failure import step
from .l2_rotation import (
    CacheSpan,
    SetComparison,
    SetPlace,
    lay_out_set,
    place_sets,
    scratch_name,
    set_count,
)

_Wanted = tuple[int | None, SetPlace]
"""A set to be read back, and what its outputs are called by; None if they are not wanted."""


class BufferSets:
    """R buffer sets in replay order, and a last one for warm times; `close` frees them."""

    def __init__(
        self, request: OpenTimingRequest, draws: Sequence[Arrays], worker: WorkerContext
    ) -> None:
        """Allocate, and fill with the inputs of `draws`: rotations of one, or several in turn.

        Raises:
            ExecutionFailure: There is not enough memory for the fewest sets.
            InfraError: An input does not have the bytes of its tensor.
        """
        self.request = request
        """What the sets were laid out for."""
        self._draws = tuple(draws)
        self._stream = worker.stream
        problem, axes = request.problem, request.workload.axes
        random = np.random.default_rng(request.layout_seed)
        self._plans = tuple(side_plan(side) for side in request.sides)
        self._layout = lay_out_set(problem, request.workload, self._plans, random)
        work = call_work(problem, axes)
        self.set_bytes = work.set_bytes
        restored_bytes = -(-self._layout.restored.size_bytes // 256) * 256
        with step("allocate"):
            free_bytes, _ = driver.call("cuMemGetInfo")
            affordable = int(free_bytes) // 2 // (self._layout.part_bytes + restored_bytes)
            self.count = set_count(work, worker.facts.l2_bytes, affordable)
        contents = distinct_contents(problem, axes, len(draws))
        self._places = place_sets(self.count, contents, random)
        self._comparison = SetComparison(problem, self._layout.layout)
        self._changing: tuple[Arrays, ...] = tuple(
            {
                t.name: one[t.name]
                for t in problem.tensors
                if t.role == "in" and (problem.row_axis is None or problem.row_axis in t.shape)
            }
            for one in draws
        )
        """Inputs that are compared and not the same in all sets, of each draw."""
        self._by_rotation: dict[int, list[SetPlace]] = defaultdict(list)
        for place in self._places:
            self._by_rotation[place.rotation].append(place)
        self.memory_bytes = 0
        """Device memory in use."""
        self._resources = ExitStack()
        try:
            with step("allocate"):
                image_bytes = self._layout.layout.total_bytes
                # Given back after the device's memory: freeing that waits for copies under way.
                self._image, *self._found = (
                    self._resources.enter_context(worker.pinned.lent(image_bytes)) for _ in range(3)
                )
                self._base = self._allocate(self._layout.part_bytes * (self.count + 1))
                copies = self._allocate(restored_bytes * len(self._by_rotation))
            self._copies = {
                rotation: copies + number * restored_bytes
                for number, rotation in enumerate(self._by_rotation)
            }
            self._paint(random)
            self._targets = self._inputs_of_image()
            self._upload()
        except BaseException:
            self.close()
            raise

    @property
    def rotations(self) -> tuple[int, ...]:
        """The contents of each set of a replay (kernels/set_contents.py), in replay order."""
        return tuple(place.rotation for place in self._places[: self.count])

    @property
    def warm_set(self) -> int:
        """The set that no replay uses."""
        return self.count

    def tensor_addresses(self, index: int) -> dict[str, int]:
        """Return the device address of every tensor of a set."""
        addresses = self._addresses(index)
        return {t.name: addresses[t.name] for t in self.request.problem.tensors}

    def plan_addresses(self, index: int, side: int) -> dict[str, int]:
        """Return the device address of every tensor, and of a side's own scratch."""
        addresses = self._addresses(index)
        plan = self._plans[side]
        scratch = plan.scratch if plan is not None else ()
        own = {entry.name: addresses[scratch_name(side, entry.name)] for entry in scratch}
        return self.tensor_addresses(index) | own

    def restore(self, index: int) -> None:
        """Enqueue what brings a set back: in-place operands copied, outputs and scratch poisoned.

        At most two graph nodes a set, the same whichever side runs next.
        """
        place = self._places[index]
        origin = self._base + place.origin(self._layout)
        restored, poisoned = self._layout.restored, self._layout.poisoned
        if restored.size_bytes:
            source = self._copies[place.rotation]
            driver.call(
                "cuMemcpyDtoDAsync",
                origin + restored.start,
                source,
                restored.size_bytes,
                self._stream,
            )
        if poisoned.size_bytes:
            driver.fill(
                origin + poisoned.start,
                self.request.poison,
                poisoned.size_bytes,
                self._stream,
            )

    def read_back(
        self, places: Iterable[int], damage: list[BufferDamage], warm: bool
    ) -> Generator[tuple[str, npt.NDArray[Any]]]:
        """Yield every output of sets as `<k>/<tensor>`, k counting `places`; valid until the next.

        Guard zones and inputs of the sets are compared on the way. Guard zones between outputs are
        poisoned with them, so that only the last replay shows there.

        Args:
            places: Sets, by their places in replay order.
            damage: What is found is added: of each buffer the first, which stands for all sets.
            warm: Whether to compare the set for warm times, too: all of it, as it is restored.

        Raises:
            ExecutionFailure: The device failed.
        """
        wanted: list[_Wanted] = [(number, self._places[k]) for number, k in enumerate(places)]
        if warm:
            wanted.append((None, self._places[self.warm_set]))
        wanted.sort(key=lambda one: one[1].rotation)
        painted: int | None = None
        known: set[tuple[str, str]] = set()
        for (number, place), found in zip(wanted, self._downloads(wanted), strict=True):
            if place.rotation != painted:
                painted = place.rotation
                self._paint_inputs(painted, self._changing)
            window = CacheSpan(place.window_start, place.window_start + self._layout.part_bytes)
            changes = self._comparison.damage(self._image, found, window)
            if number is None:
                self._paint_inputs(place.rotation, self._draws)
                changes += self._comparison.idle_damage(self._image, found)
            for changed in changes:
                if (changed.buffer, changed.where) not in known:
                    known.add((changed.buffer, changed.where))
                    damage.append(changed)
            if number is not None:
                yield from self._outputs(number, found)

    def close(self) -> None:
        """Free all memory; raises the first failure of the driver, after trying the rest."""
        self._resources.close()

    def _allocate(self, size_bytes: int) -> int:
        if size_bytes == 0:
            return 0
        address = driver.allocate(size_bytes)
        self._resources.callback(driver.free, address)
        self.memory_bytes += size_bytes
        return address

    def _addresses(self, index: int) -> Mapping[str, int]:
        origin = self._base + self._places[index].origin(self._layout)
        return self._layout.layout.addresses(origin)

    def _paint(self, random: np.random.Generator) -> None:
        """Make the host's image of a set: everything but the inputs."""
        poisoned = self._layout.poisoned
        fill_wide(self._image, self.request.poison)
        paint_guards(self._image, self._layout.layout, random)
        self._image[poisoned.start : poisoned.end] = self.request.poison

    def _inputs_of_image(self) -> Arrays:
        """Return each input's place in the host's image, as an array of its shape and dtype."""
        targets: Arrays = {}
        for name, array in self._draws[0].items():
            slot = self._layout.layout.by_name[name]
            if array.nbytes != slot.size_bytes:
                expected = f"the tensor {slot.size_bytes}"
                raise InfraError(f"input {name} has {array.nbytes} bytes, {expected}")
            content = self._image[slot.offset : slot.end]
            targets[name] = content.view(array.dtype).reshape(array.shape)
        return targets

    def _paint_inputs(self, rotation: int, draws: Sequence[Arrays]) -> None:
        request = self.request
        inputs_of_set(request.problem, request.workload.axes, draws, rotation, self._targets)

    def _upload(self) -> None:
        restored = self._layout.restored
        with step("allocate"):
            for rotation, places in self._by_rotation.items():
                self._paint_inputs(rotation, self._draws)
                for place in places:
                    window, address = self._window(self._image, place)
                    driver.copy_to_device(address, window, self._stream)
                if restored.size_bytes:
                    kept = self._image[restored.start : restored.end]
                    driver.copy_to_device(self._copies[rotation], kept, self._stream)
                driver.synchronize_stream(self._stream)  # the image changes next

    def _downloads(self, wanted: Sequence[_Wanted]) -> Generator[Bytes]:
        """Yield the bytes of each set within its window, while those of the next are copied."""
        for number in range(len(wanted) + 1):
            with step("run"):
                driver.synchronize_stream(self._stream)
                if number < len(wanted):
                    window, address = self._window(self._found[number % 2], wanted[number][1])
                    driver.copy_to_host(window, address, self._stream)
            if number:
                yield self._found[(number - 1) % 2]

    def _window(self, image: Bytes, place: SetPlace) -> tuple[Bytes, int]:
        """Return the bytes of a host image that the set's part of the allocation holds."""
        start = place.window_start
        address = self._base + place.part * self._layout.part_bytes
        return image[start : start + self._layout.part_bytes], address

    def _outputs(self, number: int, found: Bytes) -> Generator[tuple[str, npt.NDArray[Any]]]:
        axes = self.request.workload.axes
        for tensor in self.request.problem.tensors:
            if tensor.role != "in":
                slot = self._layout.layout.by_name[tensor.name]
                elements = found[slot.offset : slot.end].view(f"u{dtype_size_bytes(tensor.dtype)}")
                yield f"{number}/{tensor.name}", elements.reshape(storage_shape(tensor, axes))
