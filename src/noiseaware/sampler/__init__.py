"""Ways to draw from p(θ | y), one a file."""
