"""The pictures of results."""
