"""From raw examples to what a model takes."""
