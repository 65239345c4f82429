"""Views of messages: what is read, where a record lands, and where it went."""
