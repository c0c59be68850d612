"""The sections of `benchmarks.gpu_check`: each a generator of findings about one thing on one GPU."""
