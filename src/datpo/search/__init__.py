"""How a tree grows: how many forks, where, and from which engine."""
