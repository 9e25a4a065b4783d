"""The assurance case: Goal Structuring Notation from requirements, results and what speaks against them."""
