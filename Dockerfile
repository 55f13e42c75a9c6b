# diet-mt for NVIDIA GPUs. The host needs the driver and the NVIDIA Container Toolkit; CUDA comes with
# torch's packages, in the versions pinned in requirements/lock.txt.
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
# The set-up of a checkout: torch first, then fairseq, built against it without pip's build isolation.
RUN make -C /opt/diet-mt setup \
    && python -c "import torch, fairseq.data.data_utils_fast; assert torch.version.cuda"

# Data, checkpoints and results are written here.
WORKDIR /workspace
ENTRYPOINT ["diet-mt"]
CMD ["--help"]
