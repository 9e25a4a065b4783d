"""What each rate and each state adds to a probability."""
