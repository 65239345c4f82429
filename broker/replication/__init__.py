"""Leader and follower roles of partitions: ISR, high watermark, truncation, purgatory."""
