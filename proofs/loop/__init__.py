"""Runs of the closed loop: record, replay and measure them."""
