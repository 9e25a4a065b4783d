"""What the numbers of a run hang on: confidence, sensitivity, counterexamples, requirements, comparison."""
