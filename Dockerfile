# docker build -t batch-advisor .                                         for CPUs
# docker build -t batch-advisor --build-arg EXTRAS=gpu,postgres .         for NVIDIA GPUs
# docker run --init --rm -v "$PWD:/work" batch-advisor recommend my_workload.py
FROM python:3.12-slim

ARG EXTRAS=postgres

# git tells which version of a workload a study ran from.
RUN apt-get update && apt-get install --yes --no-install-recommends git && rm -rf /var/lib/apt/lists/*

WORKDIR /opt/advisor
COPY pyproject.toml README.md LICENSE ./
COPY advisor advisor
RUN pip install --no-cache-dir ".[${EXTRAS}]"

WORKDIR /work
RUN git config --system --add safe.directory /work
ENTRYPOINT ["advisor"]
CMD ["--help"]
