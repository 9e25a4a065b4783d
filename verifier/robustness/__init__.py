"""What happens to perception when the image degrades: detectors under test, performance, assessment."""
