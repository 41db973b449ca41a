"""Which try of a technique has a receipt: what a promotion has proven, as remarks for the base."""

from collections.abc import Iterable, Iterator
from pathlib import PurePath

from kopt.kernels.promotion_result import PromotionResult
from kopt.search.knowledge.edits import AddNote
from kopt.search.knowledge.records import WORDS_LIMIT, Sample
from kopt.search.records.members import Member
from kopt.search.store.run_reader import RunReader
from kopt.search.store.taught import THIS_RUN

PROMOTION = "promotion"
"""Kind of the document that says how the promotion of a candidate ended."""


def promotion_of(reader: RunReader, member: Member) -> PromotionResult | None:
    """Return how the promotion of a candidate ended; None if it was not put to one."""
    return reader.document(member, PROMOTION, PromotionResult)


def receipt_notes(
    reader: RunReader, members: Iterable[Member], samples: Iterable[Sample]
) -> Iterator[AddNote]:
    """Yield a remark for every gain that a promotion has proven, with the names of its receipts."""
    by_id = {sample.id: sample for sample in samples if sample.outcome == "gained"}
    for member in members:
        sample, promotion = by_id.get(f"{THIS_RUN}/{member.seq}"), promotion_of(reader, member)
        if sample is None or promotion is None or promotion.outcome != "promoted":
            continue
        names = [
            f"{promotion.kernel.removesuffix(f'_{promotion.domain[0]}')}"
            f"/{PurePath(file.receipt_path).name}"
            for file in promotion.files
            if file.action == "written"
        ]
        text = f"promoted on {promotion.gpu.name}; receipts: {', '.join(names)}"
        yield AddNote(
            state=sample.state,
            techniques=sample.techniques,
            text=text[:WORDS_LIMIT],
            reason="a gain that a promotion has proven",
            evidence=(sample.id,),
            author="rule",
        )
