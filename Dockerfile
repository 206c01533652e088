# docker build -t batch-advisor .                            for CPUs
# docker build -t batch-advisor --build-arg EXTRAS=gpu .     for NVIDIA GPUs
# docker run --rm -v "$PWD:/work" batch-advisor recommend my_workload.py
FROM python:3.12-slim

ARG EXTRAS=postgres

WORKDIR /opt/advisor
COPY pyproject.toml README.md LICENSE ./
COPY advisor advisor
RUN pip install --no-cache-dir ".[${EXTRAS}]"

WORKDIR /work
ENTRYPOINT ["advisor"]
CMD ["--help"]
