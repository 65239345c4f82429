"""The leader's part: appends, fetches, ISR changes."""
