"""Case, requirements and results in the formats that other tools read, written without a library."""
