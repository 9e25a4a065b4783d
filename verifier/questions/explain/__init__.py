"""Why a requirement has the probability it has: how it fails, what that hangs on, and what to do about it."""
