"""Messages: where a key lands, what is sent, and how records are searched and decoded."""
