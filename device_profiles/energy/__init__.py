"""Energy of a board: one interface, a reader for each kind of sensor, and a model without one."""
