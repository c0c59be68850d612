"""Where problems come from: generated puzzles, local files, or a hub of data sets."""
