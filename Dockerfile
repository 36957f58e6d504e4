# syntax=docker/dockerfile:1
# shardgate's image: a virtual environment, built in one stage and run in another that has no build tools, as a
# user without rights. Configuration is mounted at /etc/shardgate.
#
#   docker build -t shardgate .
#   docker run -v ./etc:/etc/shardgate:ro -p 3307:3307 -p 127.0.0.1:9307:9307 shardgate

ARG PYTHON=3.13

FROM python:${PYTHON}-slim-bookworm AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_ROOT_USER_ACTION=ignore
WORKDIR /src

# For what is compiled (setup.py); this stage is not in the image.
RUN apt-get update \
 && apt-get install --yes --no-install-recommends gcc libc6-dev \
 && rm -rf /var/lib/apt/lists/*

# Dependencies change rarely: a layer of their own.
COPY pyproject.toml ./
RUN python -m venv --without-pip /opt/shardgate \
 && python -c "import tomllib; p = tomllib.load(open('pyproject.toml', 'rb'))['project']; print('\n'.join(p['dependencies'] + p['optional-dependencies']['caches']))" \
      > requirements.txt \
 && pip --python /opt/shardgate/bin/python install --only-binary :all: --requirement requirements.txt

COPY README.md LICENSE setup.py ./
COPY config config
COPY rewriter rewriter
COPY proxy proxy
COPY fleet fleet
COPY demo demo
RUN pip --python /opt/shardgate/bin/python install --no-deps . \
 && /opt/shardgate/bin/shardgate id 241294492511762325 \
 && cd / && /opt/shardgate/bin/python -c "from proxy.compiled import COMPILED; assert COMPILED"

FROM python:${PYTHON}-slim-bookworm
LABEL org.opencontainers.image.title="shardgate" \
      org.opencontainers.image.description="A MySQL proxy that makes a fleet of sharded MySQL servers look like one database" \
      org.opencontainers.image.licenses="Apache-2.0"
RUN pip uninstall --yes --quiet --root-user-action=ignore pip \
 && groupadd --system --gid 10001 shardgate \
 && useradd --system --uid 10001 --gid shardgate --home-dir /var/lib/shardgate --shell /usr/sbin/nologin shardgate \
 && install --directory --owner=shardgate --group=shardgate /var/lib/shardgate /run/shardgate /etc/shardgate
COPY --from=build /opt/shardgate /opt/shardgate
ENV PATH=/opt/shardgate/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    SHARDGATE_HEALTH_URL=http://127.0.0.1:9307/healthz
USER 10001:10001
WORKDIR /var/lib/shardgate
EXPOSE 3307 9307
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=20s \
  CMD ["python", "-c", "import os, urllib.request; urllib.request.urlopen(os.environ['SHARDGATE_HEALTH_URL'], timeout=4)"]
ENTRYPOINT ["shardgate"]
CMD ["serve", "--config", "/etc/shardgate/shardgate.yaml"]
