"""What a board says about itself: memory, processor, heat, battery. Nothing here imports torch."""
