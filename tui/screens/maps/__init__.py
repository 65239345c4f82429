"""Maps: topic by broker, and partition by partition."""
