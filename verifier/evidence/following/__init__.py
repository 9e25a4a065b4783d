"""What follows from other numbers of the same result: totals, shares, worst cases, scores and breaks."""
