"""The bus of operations: commands and events on two topics, the client, the journal."""
