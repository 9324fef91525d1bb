"""Tasks: a model, its data, its loss and its metric; tracing a model; partitions."""
