# syntax=docker/dockerfile:1
# The gateway for MCP and models: `docker build -t pegboard .`; docs/deploy.md says how it is run.

FROM python:3.13-slim AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
RUN python -m venv /opt/pegboard
WORKDIR /src
COPY pyproject.toml README.md LICENSE NOTICE ./
COPY src ./src
RUN /opt/pegboard/bin/python -m pip install ".[fast,gateway,postgres,redis]" \
    && /opt/pegboard/bin/python -m pip uninstall --yes pip

FROM python:3.13-slim
RUN useradd --system --uid 10001 --user-group --home-dir /state --shell /usr/sbin/nologin pegboard \
    && install --directory --owner=pegboard --group=pegboard /state
COPY --from=build /opt/pegboard /opt/pegboard
ENV PATH=/opt/pegboard/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PEGBOARD_HOST=0.0.0.0 \
    PEGBOARD_PORT=7332 \
    XDG_CONFIG_HOME=/etc \
    PEGBOARD_STATE_DIR=/state \
    PEGBOARD_CACHE_DIR=/state/cache \
    PEGBOARD_DRAIN_WAIT=5 \
    PEGBOARD_LOG_FORMAT=json
USER pegboard
WORKDIR /etc/pegboard
VOLUME /state
EXPOSE 7332
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s --retries=3 \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:7332/readyz', timeout=2)"]
ENTRYPOINT ["pegboard"]
CMD ["serve", "--config", "/etc/pegboard/pegboard.toml"]
