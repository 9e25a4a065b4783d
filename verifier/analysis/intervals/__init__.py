"""How sure the rates and probabilities are."""
