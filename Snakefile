# The experiment: config/config.yaml. How big it is: config/scales/. What a rule does: rules/.
#   snakemake --cores 2                      everything at the scale of config.yaml
#   snakemake --cores 2 table2               one table or figure of the paper, with only what it needs: docs/paper_index.md
#   snakemake --profile slurm -n             the paper's experiment, planned for a cluster
from snakemake.utils import min_version

min_version("9.27")


report: "workflow/report/workflow.rst"


include: "rules/common.smk"
include: "rules/shown.smk"
include: "rules/data.smk"
include: "rules/methods/train.smk"


# A method is a file in rules/methods/: adding one edits nothing here.
for method in METHODS:

    include: f"rules/methods/{method}.smk"


include: "rules/evaluate.smk"
include: "rules/out_of_domain.smk"
include: "rules/analysis.smk"
include: "rules/report.smk"
include: "rules/budgets.smk"
include: "rules/studies.smk"
include: "rules/explorations.smk"
include: "rules/plan.smk"


# The paper's tables and figures beside Table 2, those of which nothing is left taken out.
SHOWN = {study: study for study in TABLES} | {figure: study for figure, (study, _) in FIGURES.items()}
SHOWN |= dict.fromkeys([*FORK_TABLES, "figure8", "figure9"], "forks") | {
    "figure2": "tokens",
    "figure3": "trees",
    "viewer": "trees",
}
SHOWN |= {"theory": "figure1"} | ({"figure10": "table11"} if STRATIFIED else {})
THERE = {*config["studies"], *config["explorations"]} - set(LACKING)
if "figure1" in THERE and not ends_together(config, "figure1", "updates"):
    SHOWN.pop("figure1_updates")


# What ended jobs could have gone on from and no job has dropped whose input they made.
onstart:
    drop_accepted(SPENT)


onsuccess:
    drop_accepted(SPENT)


onerror:
    drop_accepted(SPENT)


rule all:
    default_target: True
    input:
        rules.table2.input,
        BUDGET_TABLE,
        rules.figure_passk.input,
        rules.figure_curves.input,
        rules.figure_gained.input,
        rules.cards.input,
        rules.difficulty.input,
        rules.out_of_domain.input,
        [getattr(rules, target).input for target, source in SHOWN.items() if source in THERE],
        rules.data.input,
    localrule: True
