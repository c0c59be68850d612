# Sourced before the command of every job (rules/common.smk).
set -euo pipefail

# On SIGTERM the shell waits for its job, which writes a state and ends by itself. Without this the shell would die at
# once and Snakemake would start the next attempt beside the job that is still writing.
trap ':' INT TERM

# logged FILE COMMAND...: what the command prints goes to the terminal and to FILE. The exit code is the command's
# (pipefail), and the copy is complete when the shell goes on. The copier outlives signals so that last words arrive.
logged() {
    local log=$1
    shift
    "$@" 2>&1 | (
        trap '' INT TERM
        exec tee "$log" >&2
    )
}
