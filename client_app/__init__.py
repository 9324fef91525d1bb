"""What a board does with an order: settle, plan, train, encode, store, reply."""
