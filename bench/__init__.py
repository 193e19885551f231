"""Performance claims as ratios in one run against named peers."""
