# The experiment: config/config.yaml. How big it is: config/scales/. What a rule does: rules/.
#   snakemake --cores 2                      everything at the scale of config.yaml
#   snakemake --cores 2 table2               one named target: data, table2, budgets, figure_passk, figure_curves, cards,
#                                            difficulty, checkers, out_of_domain
#   snakemake --profile slurm -n             the paper's experiment, planned for a cluster
from snakemake.utils import min_version

min_version("9.27")


report: "workflow/report/workflow.rst"


include: "rules/common.smk"
include: "rules/data.smk"
include: "rules/methods/train.smk"


# A method is a file in rules/methods/: adding one edits nothing here.
for method in METHODS:

    include: f"rules/methods/{method}.smk"


include: "rules/evaluate.smk"
include: "rules/out_of_domain.smk"
include: "rules/analysis.smk"
include: "rules/report.smk"


rule all:
    default_target: True
    input:
        rules.table2.input,
        BUDGET_TABLE,
        rules.figure_passk.input,
        rules.figure_curves.input,
        rules.cards.input,
        rules.difficulty.input,
        rules.out_of_domain.input,
        rules.data.input,
    localrule: True
