"""Searches for a better placement: evening, trading, settling anew; what racks and topics allow."""
