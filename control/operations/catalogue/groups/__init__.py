"""Operations on consumer groups and their offsets."""
