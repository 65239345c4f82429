# One image for every part of Partiscope; docker-compose.yml says which part a container runs.
FROM python:3.13-slim-bookworm

RUN apt-get update \
    && apt-get install -y --no-install-recommends openjdk-17-jre-headless \
    && rm -rf /var/lib/apt/lists/* \
    && pip install --no-cache-dir uv

WORKDIR /opt/partiscope
ENV PATH=/opt/partiscope/.venv/bin:$PATH \
    PARTISCOPE_CACHE=/opt/partiscope/.cache \
    PYTHONUNBUFFERED=1

# Dependencies change less often than code: their layers come first.
COPY pyproject.toml uv.lock README.md LICENSE ./
# "--extra executors" brings what the metrics job needs on a Spark cluster.
ARG EXTRAS=""
RUN uv sync --locked --no-dev --no-install-project $EXTRAS

COPY partiscope partiscope
COPY broker broker
COPY spark_metrics spark_metrics
COPY planner planner
COPY control control
COPY dashboard dashboard
COPY tui tui
RUN uv sync --locked --no-dev $EXTRAS && python -m spark_metrics.job.set_up

RUN useradd --system --home-dir /data --create-home partiscope && install -d -o partiscope -m 700 /keys
USER partiscope
VOLUME /data
ENTRYPOINT ["partiscope"]
CMD ["--help"]
