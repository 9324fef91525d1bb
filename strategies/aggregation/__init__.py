"""How updates that cover different layers become one step."""
