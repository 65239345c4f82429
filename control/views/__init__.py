"""Read models for the screens: snapshot, rows, series, format, feed."""
