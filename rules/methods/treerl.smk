use rule train as train_treerl with:
    wildcard_constraints:
        method="treerl",
