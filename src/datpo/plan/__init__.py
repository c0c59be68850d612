"""What an experiment will take before it is begun: memory, tokens, operations and hours of every job of a scale."""
