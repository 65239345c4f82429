"""State that the job keeps from batch to batch, besides its tables."""
