"""Where rules fork one given rollout, and what comes of it: Tables 1, 6 and 7, Figures 2, 8 and 9."""
