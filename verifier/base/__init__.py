"""The ground floor: errors, files, limits of memory and time."""
