"""Operations on topics and their partitions."""
