"""The API: tables, operations and reassignments for programs, by tokens."""
