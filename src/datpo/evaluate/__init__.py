"""Sampling, grading and counting: from a checkpoint to metrics with intervals."""
