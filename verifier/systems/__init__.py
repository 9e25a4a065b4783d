"""System models, what planners do in them, the perception channel, and the skeleton of the Markov chain."""
