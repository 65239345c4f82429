"""Commands about brokers, topics, partitions, groups and configs."""
