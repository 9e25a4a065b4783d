"""Residual risk: hazardous behaviour and harm per hour over stated conditions, and in none of them."""
