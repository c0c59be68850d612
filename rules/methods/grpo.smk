use rule train as train_grpo with:
    wildcard_constraints:
        method="grpo",
