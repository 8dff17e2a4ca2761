# Overheard on the CPU, as a user without privileges. From a checkout:
#   docker build --tag overheard --build-arg TORCH_INDEX=INDEX .
# INDEX is the address that pytorch.org/get-started shows for the CPU. Without it, torch may come
# with CUDA: 6 GB in place of less than 1 GB.
#   docker run --rm --volume "$PWD:/work" --user "$(id -u)" overheard audit plan.toml
# The digest is that of docker-library/repo-info, the images' own record, at its commit 2477d553d2.
FROM python:3.11-slim@sha256:90744cff8f32887f075c47d747a173ff333e9e98801667af93c357fa9f5e28ff

# matplotlib writes its cache to a folder that any user may write.
ENV PIP_NO_CACHE_DIR=1 \
    PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PYTHONUNBUFFERED=1 \
    MPLCONFIGDIR=/tmp/matplotlib \
    OMP_NUM_THREADS=1

WORKDIR /overheard
ARG TORCH_INDEX=""
RUN pip install ${TORCH_INDEX:+--index-url "$TORCH_INDEX"} torch==2.13.0
COPY locks/audit.txt locks/build.txt ./
RUN pip install --require-hashes --no-deps --requirement audit.txt --requirement build.txt
COPY pyproject.toml hatch_build.py README.md LICENSE ./
COPY src ./src
RUN pip install --no-deps --no-build-isolation .

RUN useradd --create-home --uid 1000 overheard
USER overheard
WORKDIR /work
ENTRYPOINT ["overheard"]
CMD ["--help"]
