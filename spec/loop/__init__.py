"""The protocol in a closed loop: what is chosen from outside, what was seen, what is wrong."""
