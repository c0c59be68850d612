"""Engines: ways to sample from a policy. Token ids in, token ids out."""
