# Trees of up to 52 leaves: the paper's run took 60 hours, GRPO's 26 (its Table 9).
use rule train as train_datpo with:
    wildcard_constraints:
        method="datpo",
    resources:
        **model_job(hours=96),
