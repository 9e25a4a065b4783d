"""What people write: expressions, LTL and specifications."""
