"""What the numbers of a run depend on: confidence, sensitivity, counterexamples, requirements, comparison."""
