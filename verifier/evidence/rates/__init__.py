"""From a probability per encounter to a rate per hour, compared with an acceptance criterion."""
