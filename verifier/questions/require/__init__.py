"""What perception must do: the least recall that meets a requirement."""
