"""Transactions: their state, their end in every partition, and who may write into them."""
