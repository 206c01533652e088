"""The only room that starts processes."""
