"""Tables, history, their reader and errors: all that other rooms may import."""
