"""Points of history: merged in memory, by SQL, and rolled up to minutes and hours."""
