"""Tables and figures: what the metrics files and training logs say, side by side, with their uncertainty."""
