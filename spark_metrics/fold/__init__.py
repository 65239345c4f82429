"""The state of before and the rows of a batch become the figures and the state of now. Pure."""
