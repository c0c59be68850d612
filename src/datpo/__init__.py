"""Difficulty-adaptive tree-structured policy optimisation (DATPO) and its baselines."""

__version__ = "0.1.0"
