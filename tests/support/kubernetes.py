"""A stand-in for a Kubernetes cluster: the API server that fabric8, the client in Spark, is tested
with, and a node that starts executor pods as processes of this machine, by their command."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Self

import pyspark

from spark_metrics.job.connector_jars import cache_folder
from spark_metrics.job.java import find_java
from tests.support.isolation import MACHINE
from tests.support.kafka_oracle import OracleUnavailableError
from tests.support.patience import WAIT_S, patience_s
from tests.support.ports import free_ports
from tests.support.settle import wait_until

JARS: Final = Path(pyspark.__file__).parent / "jars"
START_TIMEOUT_S: Final = 90.0
POLL_S: Final = 0.5
_HERE: Final = Path(__file__).parent
_FIELDS: Final = {"status.podIP": "127.0.0.1"}
"""What a pod's environment may refer to, beside its name."""


def api_libs() -> Path:
    """Folder with the API server's jars; fetched by Maven on the first call, then kept.

    Raises:
        OracleUnavailableError: they cannot be fetched.
    """
    (client,) = JARS.glob("kubernetes-client-[0-9]*.jar")
    version = client.stem.rpartition("-")[2]
    libs = cache_folder() / "kubernetes-api" / version
    if libs.exists():
        return libs
    part = libs.with_name(f"{version}.part")
    done = subprocess.run(
        [
            *("mvn", "-q", "-B", "-f", str(_HERE / "kubernetes.pom.xml")),
            *("dependency:copy-dependencies", f"-DoutputDirectory={part}"),
            f"-Dclient.version={version}",
        ],
        env=MACHINE,
        capture_output=True,
        text=True,
        timeout=patience_s(600),
        check=False,
    )
    if done.returncode != 0:
        raise OracleUnavailableError(f"Maven could not fetch the API server: {done.stdout[-500:]}")
    part.rename(libs)
    return libs


class StandInKubernetes:
    """``master`` is Spark's; pods' specifications and output are in ``base_dir``."""

    def __init__(self, base_dir: Path) -> None:
        self._base_dir = base_dir
        (port,) = free_ports(1)
        self._port = port
        self.url = f"http://127.0.0.1:{port}"
        self.master = f"k8s://{self.url}"
        self._api: subprocess.Popen[bytes] | None = None
        self._pods: dict[str, subprocess.Popen[bytes]] = {}
        self._is_over = threading.Event()
        self._node = threading.Thread(target=self._run_pods, daemon=True)

    def __enter__(self) -> Self:
        self._base_dir.mkdir(parents=True)
        log = self._base_dir / "api.log"
        with log.open("wb") as out:
            self._api = subprocess.Popen(
                [
                    str(find_java().home / "bin" / "java"),
                    *("-cp", f"{api_libs()}/*:{JARS}/*", str(_HERE / "KubernetesApi.java")),
                    str(self._port),
                ],
                stdout=out,
                stderr=subprocess.STDOUT,
            )
        wait_until(lambda: b"ready" in log.read_bytes(), "the API", timeout_s=START_TIMEOUT_S)
        self._node.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._node.join(WAIT_S)
        assert self._api is not None
        for process in (*self._pods.values(), self._api):
            process.kill()
            process.wait(WAIT_S)

    def pods(self) -> dict[str, dict[str, Any]]:
        """The executor pods that there are, by name."""
        found = self._ask("GET", "?labelSelector=spark-role%3Dexecutor")["items"]
        return {it["metadata"]["name"]: it for it in found}

    def kill(self, pod: str) -> None:
        """As if the node ran out of memory."""
        self._pods[pod].send_signal(signal.SIGKILL)

    def _run_pods(self) -> None:
        told: set[str] = set()
        while not self._is_over.is_set():
            there = self.pods()
            for name in there.keys() - self._pods.keys():
                self._pods[name] = self._start(name, there[name])
                self._tell(name, "Running", {"running": {}})
            for name, process in self._pods.items():
                if name not in there:
                    process.kill()
                elif (status := process.poll()) is not None and name not in told:
                    told.add(name)
                    self._tell(name, "Failed", {"terminated": {"exitCode": status % 256}})
            time.sleep(POLL_S)

    def _start(self, name: str, pod: Mapping[str, Any]) -> subprocess.Popen[bytes]:
        (self._base_dir / f"{name}.json").write_text(json.dumps(pod, indent=1))
        (container,) = pod["spec"]["containers"]
        fields = {**_FIELDS, "metadata.name": name}
        told = {
            it["name"]: it["value"]
            if "value" in it
            else fields[it["valueFrom"]["fieldRef"]["fieldPath"]]
            for it in container["env"]
        }
        volume = self._base_dir / name
        volume.mkdir()
        own = {name: value for name, value in os.environ.items() if not name.startswith("SPARK_")}
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        with (self._base_dir / f"{name}.log").open("wb") as log:
            return subprocess.Popen(
                [*container["command"], *container["args"]],
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=volume,
                env={**own, **told, "SPARK_LOCAL_DIRS": str(volume), "PATH": path},
            )

    def _tell(self, pod: str, phase: str, state: Mapping[str, Any]) -> None:
        container = {
            **{"name": "spark-kubernetes-executor", "image": "", "imageID": ""},
            **{"ready": phase == "Running", "restartCount": 0, "state": state},
        }
        status = {"phase": phase, "podIP": "127.0.0.1", "containerStatuses": [container]}
        self._ask("PATCH", f"/{pod}/status", {"status": status})

    def _ask(self, method: str, path: str, body: object = None) -> Any:
        request = urllib.request.Request(
            f"{self.url}/api/v1/namespaces/default/pods{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"content-type": "application/merge-patch+json"},
        )
        with urllib.request.urlopen(request, timeout=WAIT_S) as answer:
            return json.load(answer)
