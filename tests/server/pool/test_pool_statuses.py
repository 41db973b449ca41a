"""What `kopt pool status` is told where not every pool of a cluster tells its status."""

from unittest.mock import Mock

import pytest

from kopt.config.errors import InfraError
from kopt.kernels.pool_status import PoolStatus
from kopt.server.pool.pool_desk import PoolDesk
from kopt.tools.remote.answers import PoolStatusAnswer
from kopt.tools.remote.calls import PoolStatusCall


def test_a_pool_that_tells_no_status_hides_no_other() -> None:
    status = PoolStatus(
        version="pool-a",
        evaluators=(),
        callers=(),
        evaluations_a_minute=0.0,
        calls_a_minute=0.0,
        up_s=1.0,
    )
    cluster = Mock()
    cluster.statuses.return_value = {
        "pool-a": status.model_dump_json(),
        "pool-b": '{"version": "pool-b", "from": "a later kopt"}',
        "pool-c": "no numpy in /usr/bin/python",
    }
    told: list[str] = []
    desk = PoolDesk(cluster, "", told.append)
    answer, _ = desk.answer(PoolStatusCall(), {}, desk.new_lane())
    assert answer == PoolStatusAnswer(pools=(status,))
    assert told == ["pool-b: of another version of kopt", "pool-c: no numpy in /usr/bin/python"]
    del cluster.statuses.return_value["pool-a"]
    with pytest.raises(InfraError, match="pool-c: no numpy"):
        desk.answer(PoolStatusCall(), {}, desk.new_lane())
