# One image for every part of Partiscope; docker-compose.yml and deploy/ say which part it runs.
#
# BASE: any image like Debian 12 with Python 3.11 to 3.13, its venv module, and the certificates that
# the registries of packages are reached by.
ARG BASE=python:3.13-slim-bookworm
FROM ${BASE}

RUN apt-get update \
    && apt-get install -y --no-install-recommends openjdk-17-jre-headless \
    && rm -rf /var/lib/apt/lists/* \
    && python3 -m venv /opt/uv && /opt/uv/bin/pip install --no-cache-dir uv

WORKDIR /opt/partiscope
ENV PATH=/opt/partiscope/.venv/bin:$PATH \
    PARTISCOPE_CACHE=/opt/partiscope/.cache \
    PYTHONUNBUFFERED=1 \
    UV_COMPILE_BYTECODE=1 UV_NO_CACHE=1 UV_PYTHON_DOWNLOADS=never UV_SYSTEM_CERTS=1

# Dependencies change less often than code: their layers come first.
COPY pyproject.toml uv.lock README.md LICENSE ./
# "--extra executors" brings what the metrics job needs on a Spark cluster.
ARG EXTRAS=""
RUN /opt/uv/bin/uv sync --locked --no-dev --no-install-project $EXTRAS

COPY partiscope partiscope
COPY broker broker
COPY spark_metrics spark_metrics
COPY planner planner
COPY control control
COPY dashboard dashboard
COPY tui tui
RUN /opt/uv/bin/uv sync --locked --no-dev $EXTRAS \
    && python -m spark_metrics.job.set_up \
    && ln -s "$(python -c 'import pyspark; print(*pyspark.__path__)')" /opt/spark

# A number, so that Kubernetes sees that it is not root.
RUN useradd --uid 10001 --user-group --home-dir /data --no-create-home partiscope \
    && install -d -o partiscope -g partiscope -m 700 /data /keys /spark
USER 10001:10001
ENTRYPOINT ["partiscope"]
CMD ["--help"]
