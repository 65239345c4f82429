"""What the Spark session is started with."""

import pytest

from spark_metrics.job.spark_session import TASK_ATTEMPTS_MAX, gist, with_retries


@pytest.mark.parametrize("threads", ["2", "*"])
def test_a_task_whose_broker_hangs_is_tried_again_in_one_jvm(threads: str) -> None:
    assert with_retries(f"local[{threads}]") == f"local[{threads},{TASK_ATTEMPTS_MAX}]"


@pytest.mark.parametrize("master", ["local[2,4]", "local-cluster[1,1,1024]", "spark://a:7077"])
def test_masters_that_tell_or_have_attempts_stay(master: str) -> None:
    assert with_retries(master) == master


OF_A_TASK = """[STREAM_FAILED] Query [id = 6a05] terminated with exception: Return Message: \
Traceback (most recent call last):
  File "/opt/job/query.py", line 66, in commit
    sink(batch, batch_id)
    ^^^^^^^^^^^^^^^^^^^^^
pyspark.errors.exceptions.captured.PythonException: An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "./partiscope-metrics.zip/spark_metrics/store/files.py", line 156, in read_whole
    return pq.ParquetFile(source).read()

  File "pyarrow/error.pxi", line 92, in pyarrow.lib.check_status
pyarrow.lib.ArrowInvalid: Parquet file size is 6 bytes
 SQLSTATE: 39000
\tat org.apache.spark.sql.execution.python.ArrowPythonRunner.read(ArrowPythonRunner.scala:1)
SQLSTATE: XXKST"""
OF_THE_DRIVER = """Return Message: Traceback (most recent call last):
  File "/opt/job/query.py", line 66, in commit
    sink(batch, batch_id)
RuntimeError: of 8 buckets 7 came back

\tat py4j.Protocol.getReturnValue(Protocol.java:476)"""
OF_JAVA = """An error occurred while calling o1.start.
: java.lang.IllegalStateException: Incomplete log file
\tat org.apache.spark.Log.read(Log.scala:1)"""


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (OF_A_TASK, "pyarrow.lib.ArrowInvalid: Parquet file size is 6 bytes"),
        (OF_THE_DRIVER, "RuntimeError: of 8 buckets 7 came back"),
        (OF_JAVA, "java.lang.IllegalStateException: Incomplete log file"),
        ("Job aborted", "Job aborted"),
        ("", "RuntimeError"),
    ],
)
def test_an_error_is_told_by_its_cause(text: str, told: str) -> None:
    assert gist(RuntimeError(text)) == told
