"""Boards and fleets, what a plan costs on a board, and the clock of a simulated fleet."""
