"""What speaks against a verdict, found in the documents: every doubt by a pure function, none left to luck."""
