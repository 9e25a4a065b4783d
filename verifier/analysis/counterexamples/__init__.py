"""How a requirement fails: paths, causes and replays."""
