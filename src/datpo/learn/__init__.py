"""Everything that trains: the tiny base model, packing, losses, the policy and the trainer."""
