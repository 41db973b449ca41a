"""What is kept between benchmarks."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from kopt.config.files import content_hash
from kopt.config.settings import Settings
from kopt.kernels.bench_result import NoiseFloor
from kopt.kernels.record import Record
from kopt.tools.bench.kept_records import forget, keep, load_kept

KEY = {"kind": "noise_floor/1", "device": "GPU-1"}
FLOOR = NoiseFloor(median=0.001, half_width=0.002, pairs=100, cached=False, measured_at="now")


def _file(settings: Settings) -> Path:
    (path,) = (settings.home / "cache" / "timing").iterdir()
    return path


def test_what_was_kept_is_found_under_the_same_key_only(settings: Settings) -> None:
    keep(settings, KEY, FLOOR)
    assert load_kept(settings, KEY, NoiseFloor) == FLOOR
    assert load_kept(settings, {**KEY, "device": "GPU-2"}, NoiseFloor) is None


def test_nothing_kept_is_nothing_found(settings: Settings) -> None:
    assert load_kept(settings, KEY, NoiseFloor) is None


@pytest.mark.parametrize("text", ["", "{", "null", "[]", '{"key": {}}', "\udcff"])
def test_a_damaged_file_counts_as_absent_and_is_replaced(settings: Settings, text: str) -> None:
    keep(settings, KEY, FLOOR)
    _file(settings).write_bytes(text.encode("utf-8", "surrogateescape"))
    assert load_kept(settings, KEY, NoiseFloor) is None
    keep(settings, KEY, FLOOR)
    assert load_kept(settings, KEY, NoiseFloor) == FLOOR


@pytest.mark.parametrize("age", [timedelta(hours=25), timedelta(hours=-1)])
def test_an_entry_from_another_day_counts_as_absent(settings: Settings, age: timedelta) -> None:
    keep(settings, KEY, FLOOR)
    path = _file(settings)
    entry = json.loads(path.read_text().partition("\n")[2])
    for written_at, found in ((datetime.now(UTC), FLOOR), (datetime.now(UTC) - age, None)):
        text = json.dumps(entry | {"written_at": written_at.isoformat()})
        path.write_text(f"{content_hash([text])}\n{text}")
        assert load_kept(settings, KEY, NoiseFloor) == found


def test_an_entry_with_any_bit_changed_counts_as_absent(settings: Settings) -> None:
    keep(settings, KEY, FLOOR)
    path = _file(settings)
    sound = path.read_bytes()
    for place in range(len(sound)):
        changed = bytearray(sound)
        changed[place] ^= 1 << place % 8
        path.write_bytes(changed)
        assert load_kept(settings, KEY, NoiseFloor) is None, place


def test_a_file_moved_to_another_key_counts_as_absent(settings: Settings) -> None:
    keep(settings, KEY, FLOOR)
    original = _file(settings)
    text = original.read_text()
    original.unlink()
    other = {**KEY, "device": "GPU-2"}
    keep(settings, other, FLOOR)
    _file(settings).write_text(text)
    assert load_kept(settings, other, NoiseFloor) is None


def test_a_record_of_another_form_counts_as_absent(settings: Settings) -> None:
    class Another(Record):
        name: str

    keep(settings, KEY, Another(name="x"))
    assert load_kept(settings, KEY, NoiseFloor) is None


def test_what_was_forgotten_is_not_found(settings: Settings) -> None:
    keep(settings, KEY, FLOOR)
    forget(settings, KEY)
    forget(settings, KEY)
    assert load_kept(settings, KEY, NoiseFloor) is None


def test_no_half_written_file_is_left(settings: Settings) -> None:
    keep(settings, KEY, FLOOR)
    keep(settings, KEY, FLOOR)
    assert [path.suffix for path in (settings.home / "cache" / "timing").iterdir()] == [".json"]
