"""The picture of the first page shows the kept records."""

from pathlib import Path

from progress_picture import shipped_picture

PICTURE = Path(__file__).parents[2] / "docs" / "images" / "progress.svg"


def test_the_picture_is_drawn_from_the_kept_records() -> None:
    assert PICTURE.read_text("utf-8") == shipped_picture()


def test_every_measured_candidate_has_a_mark_and_the_best_a_name() -> None:
    drawn = shipped_picture()
    assert drawn.count("<circle ") == 17
    assert "seven blocks of 128 threads, 1.57x" in drawn
