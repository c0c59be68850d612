# What jobs ask of a cluster: their own needs (here and in their rules), within what its profile says. No rules.
import ast
import builtins
from itertools import pairwise

from snakemake import ioutils
from snakemake.cli import get_profile_dir
from snakemake.profiles import ProfileConfigFileParser
from snakemake.resources import Resources

# Seconds before its time limit at which a job is told to stop: more than a training step of the paper's scale and the
# writing of its state take. Never the larger part of a limit.
NOTICE = 20 * 60
# The profile's lines whose values are texts, and the words that are Python to Snakemake where it evaluates them.
TEXTS = ("slurm_account", "slurm_partition", "gpu_partition", "gpu_kind", "gpu_feature", "qos", "slurm_extra")
PYTHON = {*dir(builtins), *dir(ioutils), "wildcards", "output", "params", "resources", "threads", "attempt"}
PYTHON |= {"async_run", "shutil", "system_tmpdir"}


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
        with file.open(encoding="utf-8") as stream:
            pairs = ProfileConfigFileParser().parse(stream).get("default-resources", [])
        check_site(file.read_text(encoding="utf-8"), dict(map(Resources.decode_arg, pairs)), file)
        for name, value in Resources.parse(pairs, allow_expressions=True).items():
            resources.setdefault(name, value)
    return {name: os.path.expandvars(str(value.raw)).strip("'\"") for name, value in resources.items()}


def check_site(text: str, taken: dict, file: Path) -> None:
    """Refuse what is written as Slurm's own commands say it, but means something else here, or is refused days later."""
    written = (yaml.load(text, yaml.BaseLoader) or {}).get("default-resources")
    for name in TEXTS:
        said = written.get(name) if isinstance(written, dict) else taken.get(name)
        if name in taken and not arrives(said, taken[name]):
            value = str(said).replace("'", "")
            meant = f"{name}: \"'{value}'\""
            sys.exit(
                f"{file}: {name}: {value} would be taken for something else than a text; write {meant}"
                if value
                else f"{file}: {name}: nothing follows; put a # before the line"
            )
    if clock := re.search(r"^\s*runtime:\s*(\S*:\S*)", text, re.M):
        sys.exit(f"{file}: runtime: {clock[1]} would not be read as hours; write 4h, 24h or 7d")
    kind = re.search(r"^\s*gpu_kind:\s*([^\s#]+)", text, re.M)
    if kind and not re.fullmatch(r"[A-Za-z0-9_.]+", kind[1].strip("'\"")):
        sys.exit(
            f"{file}: gpu_kind: {kind[1]} has a character that Snakemake's Slurm plugin refuses in such a name; leave "
            "the line out, and say gpu_feature, one that only nodes with such GPUs have (sinfo --format=%f)"
        )


def arrives(text: str, taken: str) -> bool:
    """Whether a text is still itself when YAML has read it, and then Snakemake, which takes it for Python if it can."""
    if taken != text:
        return isinstance(text, str) and taken == repr(text)  # a number in quotes
    text = os.path.expandvars(text)
    try:
        tree = ast.parse(text, mode="eval")
    except SyntaxError:
        return True
    if isinstance(tree.body, ast.Constant):
        return isinstance(tree.body.value, str) or text.isdecimal()
    return not {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} <= PYTHON


SITE = site_resources()


def avoiding_named_nodes(submit_command):
    """How the Slurm plugin submits a job, but that nodes to be avoided have a name.

    Of a job that lost its node and waits for another, accounting says "None assigned". The plugin (2.8.0, its issue 485)
    would avoid a node of that name, and `sbatch` refuse all jobs from then on.
    """

    def command(*job, failed_nodes=None, **settings):
        named = {node for node in failed_nodes or () if " " not in node}
        return submit_command(*job, failed_nodes=named, **settings)

    return command


if SLURM := sys.modules.get("snakemake_executor_plugin_slurm"):
    SLURM.get_submit_command = avoiding_named_nodes(SLURM.get_submit_command)


# How often a failed job is tried again, unless it runs beside Snakemake. Not by the Snakemake that Slurm starts for one
# job: that would be in the same place, with the memory that was not enough. Being stopped is no failure (workflow/job.sh).
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


def light_job(minutes: int, mem_mb: int) -> dict:
    """Resources of a job that loads no model's weights: with each try more of both."""
    return {
        "runtime": lambda wildcards, attempt: attempt * minutes,
        "mem_mb": lambda wildcards, attempt: attempt * mem_mb,
    }
