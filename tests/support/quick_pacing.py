"""Waiting that takes no time and is written down."""

from kopt.tools.docs.pinecone_index.upload import Pacing


class QuickPacing:
    """What uploads sleep by in tests."""

    def __init__(self) -> None:
        """Nothing was slept yet."""
        self.slept: list[float] = []
        self.pacing = Pacing(sleep=self._sleep, settle_s=10.0)

    def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
