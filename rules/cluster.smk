# What jobs ask of a cluster: their own needs (here and in their rules), within what its profile says. No rules.
from itertools import pairwise

from snakemake.cli import get_profile_dir
from snakemake.resources import Resources

# Seconds before its time limit at which a job is told to stop: more than a training step of the paper's scale and the
# writing of its state take. Never the larger part of a limit.
NOTICE = 20 * 60


def site_resources() -> dict:
    """The profile's default resources, with those of the command line laid over them one by one.

    Snakemake would take --default-resources in place of all of the profile's.
    """
    resources = workflow.resource_settings.default_resources
    if resources is None:
        return {}
    options = [*pairwise(sys.argv), *(word.split("=", 1) for word in sys.argv if "=" in word)]
    profiles = [name for option, name in options if option == "--profile"]
    for _, file in filter(
        None, map(get_profile_dir, profiles or [os.environ.get("SNAKEMAKE_PROFILE", "none")])
    ):
        text = file.read_text(encoding="utf-8")
        check_site(text, file)
        said = (yaml.safe_load(text) or {}).get("default-resources") or {}
        pairs = said if isinstance(said, list) else [f"{name}={value}" for name, value in said.items()]
        for name, value in Resources.parse(pairs, allow_expressions=True).items():
            resources.setdefault(name, value)
    return {name: str(value.raw).strip("'\"") for name, value in resources.items()}


def check_site(text: str, file: Path) -> None:
    """Refuse what is written as Slurm's own commands say it, but means something else here, or is refused days later."""
    if clock := re.search(r"^\s*runtime:\s*(\S*:\S*)", text, re.M):
        sys.exit(f"{file}: runtime: {clock[1]} would not be read as hours; write 4h, 24h or 7d")
    kind = re.search(r"^\s*gpu_kind:\s*([^\s#]+)", text, re.M)
    if kind and not re.fullmatch(r"[A-Za-z0-9_.]+", kind[1].strip("'\"")):
        sys.exit(
            f"{file}: gpu_kind: {kind[1]} has a character that Snakemake's Slurm plugin refuses in such a name; leave "
            "the line out, and say gpu_feature, one that only nodes with such GPUs have (sinfo --format=%f)"
        )


SITE = site_resources()


# How often a failed job that loads a model is tried again. Not by the Snakemake that Slurm starts for one job: that would
# be in the same place, with the memory that was not enough. Being stopped is no failure (workflow/job.sh).
RETRIES = config["jobs"]["retries"] if workflow.is_main_process else 0


def model_job(hours: int) -> dict:
    """Resources of a job that loads a model and takes at most about so long at the paper's scale.

    The site may give less time at once (`resources: runtime` of its profile).
    """
    jobs = config["jobs"]
    minutes = min(hours * 60, workflow.global_resources.get("runtime").value or hours * 60)
    resources = {
        "runtime": hours * 60,
        "mem_mb": lambda wildcards, attempt: attempt * jobs["memory_gb"] * 1000,
        # To the job's steps, where the command is, and not to its batch script, which would die at once.
        "slurm_extra": f"--signal=TERM@{min(NOTICE, minutes * 60 // 4)} {SITE.get('slurm_extra', '')}".strip(),
    }
    if jobs["gpus"]:
        site = {
            "slurm_partition": SITE.get("gpu_partition"),
            "gpu_model": SITE.get("gpu_kind"),
            "constraint": SITE.get("gpu_feature"),
        }
        resources |= {"gpu": jobs["gpus"], "nodes": 1} | {
            name: value for name, value in site.items() if value
        }
    return resources
