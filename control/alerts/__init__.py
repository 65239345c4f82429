"""The rules, states and messages of alerts. Pure: clock and network are passed in."""
