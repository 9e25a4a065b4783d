"""The tool qualification kit: its tables, the validation suite, the report of a run on the user's machine."""
