"""Which recalls a requirement needs."""
