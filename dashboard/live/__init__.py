"""Figures that follow the cluster: news over WebSockets, and the snapshot that views show."""
