"""Studies of the method itself by simulation: calibration, utility, widths, and plans for a release to come."""
