# shellcheck shell=bash
# Shares an update among the GPUs of this machine or of several, or leaves it to the processor.
# Sourced, not run. Also what is needed to ask: PYTHON, PYTHONPATH, and messages.sh.

PYTHON=${PYTHON:-python3}
GPUS=${GPUS:-auto}                  # of this machine
PRECISION=${PRECISION:-auto}        # bf16, fp16 or fp32
NODES=${NODES:-${SLURM_STEP_NUM_NODES:-1}} # machines, all alike, that share the folder of checkpoints
export NODE_RANK=${NODE_RANK:-${SLURM_NODEID:-0}}
MASTER=${MASTER:-}                  # HOST:PORT of machine 0; under Slurm: found, with this
PORT=${PORT:-29500}

_scripts=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export PYTHONPATH="$_scripts/..${PYTHONPATH:+:$PYTHONPATH}"
# shellcheck source=scripts/messages.sh
. "$_scripts/messages.sh"
# shellcheck source=scripts/numbers.sh
. "$_scripts/numbers.sh"

# share_update WHO UNIT TOTAL CEILING: TOTAL units (tokens, sequences) make an update on all devices
# together, and CEILING fit on one at a time. Sets BATCH, the units of a batch, UPDATE_FREQ, PRECISION,
# PROCESSES of the whole training, and LAUNCH, fairseq's options that say where to run.
share_update() {
  local hardware gpus total each machines
  local -a launch=()
  need_numbers NODES NODE_RANK
  hardware=$("$PYTHON" -m diet_mt.evaluation.hardware --tokens "$3" --ceiling "$4" \
    --machines "$NODES" --gpus "$GPUS" --precision "$PRECISION")
  [ "$NODES" -gt 1 ] || NODE_RANK=0
  read -r gpus PRECISION BATCH UPDATE_FREQ total <<<"$hardware"
  say "$1: $NODES x $gpus GPUs, $PRECISION, batches of $BATCH $2, $UPDATE_FREQ on each of them for an update: $total $2"
  each=$((gpus > 0 ? gpus : 1))
  [ "$gpus" -gt 0 ] || launch=(--cpu)
  if [ "$NODES" -gt 1 ]; then
    [[ $GPUS =~ ^(auto|0)$ ]] || die "GPUS=$GPUS: on several machines, choose by CUDA_VISIBLE_DEVICES"
    if [ -z "$MASTER" ]; then
      [ -n "${SLURM_STEP_NODELIST:-}" ] || die "NODES=$NODES: set MASTER to HOST:PORT of machine 0"
      machines=$(scontrol show hostnames "$SLURM_STEP_NODELIST")
      MASTER=${machines%%$'\n'*}:$PORT
    fi
    launch+=(--distributed-init-method "tcp://$MASTER" --distributed-rank $((NODE_RANK * each)))
    # fairseq starts one process for each GPU; torch's own parallel modules are not for CPUs.
    [ "$gpus" -gt 0 ] || launch+=(--distributed-no-spawn --distributed-backend gloo --ddp-backend legacy_ddp)
  fi
  export PROCESSES=$((NODES * each)) LAUNCH="${launch[*]}"
}
