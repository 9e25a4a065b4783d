"""The manual, in pages that are shipped with the program, and the gallery of systems to start from."""
