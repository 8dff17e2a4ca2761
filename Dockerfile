# Overheard on the CPU, as a user without privileges. From a checkout:
#   docker build --tag overheard .
#   docker run --rm --volume "$PWD:/work" --user "$(id -u)" overheard audit plan.toml
FROM python:3.11-slim

# matplotlib writes its cache to a folder that any user may write.
ENV PIP_NO_CACHE_DIR=1 \
    PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PYTHONUNBUFFERED=1 \
    MPLCONFIGDIR=/tmp/matplotlib \
    OMP_NUM_THREADS=1

WORKDIR /overheard
COPY constraints.txt ./
# The wheels without CUDA: less than 1 GB in place of 6 GB.
RUN pip install --constraint constraints.txt --index-url https://download.pytorch.org/whl/cpu torch==2.13.0
COPY pyproject.toml README.md LICENSE ./
COPY src ./src
RUN pip install --constraint constraints.txt '.[dp]'

RUN useradd --create-home --uid 1000 overheard
USER overheard
WORKDIR /work
ENTRYPOINT ["overheard"]
CMD ["--help"]
