"""Commands that plan, check and run reassignments, and what steers them."""
