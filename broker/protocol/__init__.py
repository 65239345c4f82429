"""Wire vocabulary: frames, messages, record batches. Imports nothing of ours."""
