"""The follower's part: fetching from leaders."""
