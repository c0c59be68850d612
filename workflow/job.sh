# Sourced before the command of every job (rules/common.smk).
set -euo pipefail

# On SIGTERM the shell waits for its job, which writes a state and ends by itself. Without this the shell would die at
# once and Snakemake would start the next attempt beside the job that is still writing.
trap ':' INT TERM

# Threads are the rule's `threads:` (Snakemake says so to OpenMP). Waiting ones sleep: spinning beside another job they
# took up to 25 times as long.
export OMP_WAIT_POLICY="${OMP_WAIT_POLICY:-passive}" GOMP_SPINCOUNT="${GOMP_SPINCOUNT:-0}"

# A rule's own environment is what its file says: nothing that the user once installed for this version of Python. (The
# file tested is Snakemake's, beside each environment that it made.)
if [[ -e "${CONDA_PREFIX:-}.env_setup_done" ]]; then export PYTHONNOUSERSITE=1; fi

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
    take_turn "$log" || return 0
    (
        command=$BASHPID # of what takes this shell's place
        end_with_snakemake "$command" &>/dev/null 9>&- &
        exec "${OFFLINE[@]}" "$@"
    ) 2>&1 | (
        trap '' INT TERM
        exec tee "$log" >&2
    ) || stopped $?
    end_turn
}

# stopped STATUS: the end of a job whose command failed. One that was told to stop, and did, is queued again by Slurm
# itself, before its time limit or where it has to make room: it goes on where it was, as often as it takes, and that is
# none of the few retries. Not one that is about to be cancelled; and only a job that holds a rule, not an allocation in
# which somebody runs Snakemake.
stopped() {
    local job=${SLURM_JOB_ID:-} is
    if (($1 == 143)) && [[ -n "$job" ]]; then
        is=$(squeue --noheader --jobs="$job" --format="%T %k") || is=unknown
        if [[ $is == unknown ]] || { [[ $is == "RUNNING rule_"* ]] && ! scontrol requeue "$job"; }; then
            echo "job $job cannot be queued again from here, so it counts as a retry (docs/cluster.md)" >&2
        fi
    fi
    exit "$1"
}

# end_with_snakemake PROCESS: asks the command to stop once this shell or the Snakemake that started it is gone. If it
# went on to the end all the same, nobody would take note, and the next Snakemake would do its work again.
end_with_snakemake() {
    local parent
    [[ -r /proc/self/stat ]] || return 0 # not Linux
    while sleep 1 && kill -0 "$1"; do
        read -r _ _ _ parent _ <"/proc/$$/stat" || parent=none
        [[ $parent == "$PPID" ]] || kill -TERM "$1"
    done
}

# take_turn LOG: goes on once no other copy of the job with this log is at work, and fails if one has just done it. There
# are two where Snakemake was killed and its job was not, or where a cluster queues a job again that it had not lost. The
# turn is held by the shell and the command, whichever lives longer, and passes on however they die.
take_turn() {
    local file=".snakemake/turns/${1//\//%}" status=0
    command -v flock >/dev/null || return 0 # not a part of macOS
    mkdir -p .snakemake/turns
    exec 9<>"$file"
    flock --nonblock --conflict-exit-code 75 9 || status=$?
    if ((status == 75)); then
        echo "$1: another copy of this job is at work; waiting for its end" >&2
        flock 9 || exit
        [[ $(<"$file") != "done" ]] || return 1
    elif ((status)); then
        echo "$1: no file locks on this disk; a second copy of this job would run beside the first" >&2
    fi
    : >"$file"
}

end_turn() {
    { echo "done" >&9; } 2>/dev/null || true
}
