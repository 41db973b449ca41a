"""What a GPU takes for the things that the time model rests on, measured on that GPU."""
