"""Operations on alerts."""
