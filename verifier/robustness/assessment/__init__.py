"""Is a detector robust in the circumstances of its use? The assessment of Wozniak, Segura and Mazo 2024 as a tool."""
