"""What an operator can do: use cases shared by both screens and the command line."""
