"""The server: the run and its rounds, messages, checkpoints and what is written down."""
