"""What happens to perception when the image degrades: mutators, detectors under test, performance, assessment."""
