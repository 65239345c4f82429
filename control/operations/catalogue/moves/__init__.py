"""Operations on one reassignment that was submitted: one file per operation."""
