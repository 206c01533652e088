"""Arithmetic on evidence: no clock, no files, no randomness that was not passed in."""
