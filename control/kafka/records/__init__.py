"""Records of topics: fetched, decoded, browsed, followed, produced."""
