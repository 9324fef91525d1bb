"""The project's own tasks, one file each; ``tasks.registry`` lists them."""
