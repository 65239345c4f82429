"""Operations on brokers."""
