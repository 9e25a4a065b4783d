"""What is asked of a checked system: why, what is required, which is better, what the data say."""
