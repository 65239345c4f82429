"""What makes files durable, and what becomes of a disk that fails."""
