"""What is exposed to Prometheus."""
