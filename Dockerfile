# diet-mt for NVIDIA GPUs. The host needs their driver and the NVIDIA Container Toolkit; CUDA itself
# comes with torch's packages, in the versions that requirements/lock.txt pins.
#
#   docker build -t diet-mt .                                            8 GB, ten minutes
#   docker run --rm --gpus all -v "$PWD:/workspace" diet-mt sweep demo
#   docker run --rm --gpus all -v "$PWD:/workspace" --entrypoint fairseq-train diet-mt /workspace/data/x/bin ...
FROM python:3.11.11-bookworm

ENV PATH=/opt/diet-mt/.venv/bin:$PATH \
    NVIDIA_VISIBLE_DEVICES=all \
    NVIDIA_DRIVER_CAPABILITIES=compute,utility \
    PIP_NO_CACHE_DIR=1 \
    PYTHONUNBUFFERED=1

COPY . /opt/diet-mt
# The same set-up as everywhere: torch first, then fairseq, built against it without pip's isolation.
RUN make -C /opt/diet-mt setup \
    && python -c "import torch, fairseq.data.data_utils_fast; assert torch.version.cuda"

# Folders of data, checkpoints and results are made where the container is told to work.
WORKDIR /workspace
ENTRYPOINT ["diet-mt"]
CMD ["--help"]
