"""What the Spark session is started with."""

import pytest

from spark_metrics.job.spark_session import TASK_ATTEMPTS_MAX, with_retries


@pytest.mark.parametrize("threads", ["2", "*"])
def test_a_task_whose_broker_hangs_is_tried_again_in_one_jvm(threads: str) -> None:
    assert with_retries(f"local[{threads}]") == f"local[{threads},{TASK_ATTEMPTS_MAX}]"


@pytest.mark.parametrize("master", ["local[2,4]", "local-cluster[1,1,1024]", "spark://a:7077"])
def test_masters_that_tell_or_have_attempts_stay(master: str) -> None:
    assert with_retries(master) == master
