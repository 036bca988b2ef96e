"""`python -m noiseaware`, the same as the command."""

from noiseaware.cli import main

main()
