"""How results are told: what a page is made of, and its writers."""
