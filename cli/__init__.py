"""The ``fedfreeze`` command: one module for each subcommand, and what a run needs."""
