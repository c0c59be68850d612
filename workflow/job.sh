# Sourced before the command of every job (rules/common.smk).
set -euo pipefail

# On SIGTERM the shell waits for its job, which writes a state and ends by itself. Without this the shell would die at
# once and Snakemake would start the next attempt beside the job that is still writing.
trap ':' INT TERM

# Threads are the rule's `threads:` (Snakemake says so to OpenMP). Waiting ones sleep: spinning beside another job they
# took up to 25 times as long.
export OMP_WAIT_POLICY="${OMP_WAIT_POLICY:-passive}" GOMP_SPINCOUNT="${GOMP_SPINCOUNT:-0}"

# Jobs ask the network for nothing: compute nodes often see none, and what came from it yesterday may be another thing
# today. The few rules that fetch, all of them local, say `online` first; then it is as the user has it.
OFFLINE=(env HF_HUB_OFFLINE=1 HF_DATASETS_OFFLINE=1 TRANSFORMERS_OFFLINE=1)
online() {
    OFFLINE=(env)
}

# logged FILE COMMAND...: what the command prints goes to the terminal and to FILE. The exit code is the command's
# (pipefail), and the copy is complete when the shell goes on. The copier outlives signals so that last words arrive.
logged() {
    local log=$1
    shift
    "${OFFLINE[@]}" "$@" 2>&1 | (
        trap '' INT TERM
        exec tee "$log" >&2
    )
}
