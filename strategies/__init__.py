"""What a run does: the strategy TOML, freeze policies, methods, planning and merging."""
