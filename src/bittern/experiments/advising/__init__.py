"""The parts of an advice: rows, truth, trials, estimates, speed, the choice and its wording."""
