# What a job asks of a cluster: its own needs, in the terms of the profile in use. No rules.
from math import ceil

from snakemake.cli import get_profile_dir

# How long before its time limit a job is told to stop: more than a training step of the paper's scale and its state
# take. Seconds.
NOTICE = 20 * 60


def keep_default_resources() -> None:
    """Lay --default-resources over the profile's, one by one: Snakemake takes them in place of all of the profile's."""
    pairs = [*pairwise(sys.argv), *(word.split("=", 1) for word in sys.argv if "=" in word)]
    named = [name for option, name in pairs if option == "--profile"] or [os.environ.get("SNAKEMAKE_PROFILE", "none")]
    for _, file in filter(None, map(get_profile_dir, named)):
        profile = yaml.safe_load(file.read_text(encoding="utf-8")) or {}
        for name, value in (profile.get("default-resources") or {}).items():
            DEFAULT_RESOURCES.setdefault(name, value)
