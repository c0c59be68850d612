use rule train as train_attnrl with:
    wildcard_constraints:
        method="attnrl",
