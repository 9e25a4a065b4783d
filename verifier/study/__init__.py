"""What is studied: scenarios under options, their cases, what was found, and where it comes from."""
