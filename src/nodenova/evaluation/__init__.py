"""Grading: a result is a confusion matrix, every score is arithmetic on it."""
