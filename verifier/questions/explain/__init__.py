"""Why a requirement has the probability it has: how it fails, what that depends on, and what to do about it."""
