"""Frozen data that the rooms hand to one another; standard library only, units in the names."""
