# Trees of up to 30 leaves: the paper's run took 56 hours, GRPO's 26 (its Table 9).
use rule train as train_treerl with:
    wildcard_constraints:
        method="treerl",
    resources:
        **model_job(hours=96),
