"""Tables of all faces: columns, filters, sorting, rows and export."""
