"""From images and detectors to what mutations do: mutated, detected, localized, counted, and judged by every part."""
