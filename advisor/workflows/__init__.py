"""The use cases; they see the outside only through ports."""
