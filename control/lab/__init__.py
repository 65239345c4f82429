"""The produce lab: which partition a key hits, where many keys land, and loads to try it."""
