"""Rollout trees to look at: pages for a browser, and a picture."""
