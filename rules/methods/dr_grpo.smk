use rule train as train_dr_grpo with:
    wildcard_constraints:
        method="dr_grpo",
