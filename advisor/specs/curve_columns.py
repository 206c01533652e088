"""The columns of a file of trainings to a target."""

STEPS, EXAMPLES, EPOCHS = "steps_to_target", "examples_to_target", "epochs_to_target"
AMOUNTS = (STEPS, EXAMPLES, EPOCHS)
"""How far a run trained; the first of them that a file has is read."""

COLUMNS = (
    "batch_size",
    *AMOUNTS,
    "examples_per_epoch",
    "reached",
    "max_train_steps",
    "evaluated_every",
    "seed",
    "learning_rate",
    "time_per_step_s",
    "task",
)
