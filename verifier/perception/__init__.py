"""From detections to confusion matrices."""
