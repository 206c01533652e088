"""Optuna studies, their samplers and their dashboard."""
