"""From results to what an assessor signs and a pipeline gates on."""
