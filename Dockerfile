# Overheard on the CPU, as a user without privileges. From a checkout:
#   docker build --tag overheard --build-arg TORCH_INDEX=INDEX .
# INDEX is the address that pytorch.org/get-started shows for the CPU. Without it, torch may come
# with CUDA: 6 GB in place of less than 1 GB.
#   docker run --rm --volume "$PWD:/work" --user "$(id -u)" overheard audit plan.toml
FROM python:3.11-slim

# matplotlib writes its cache to a folder that any user may write.
ENV PIP_NO_CACHE_DIR=1 \
    PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PYTHONUNBUFFERED=1 \
    MPLCONFIGDIR=/tmp/matplotlib \
    OMP_NUM_THREADS=1

WORKDIR /overheard
ARG TORCH_INDEX=""
RUN pip install ${TORCH_INDEX:+--index-url "$TORCH_INDEX"} torch==2.13.0
COPY locks/audit.txt ./
RUN pip install --require-hashes --no-deps --requirement audit.txt
COPY pyproject.toml hatch_build.py README.md LICENSE ./
COPY src ./src
RUN pip install --no-deps .

RUN useradd --create-home --uid 1000 overheard
USER overheard
WORKDIR /work
ENTRYPOINT ["overheard"]
CMD ["--help"]
