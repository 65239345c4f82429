"""Adapters to any Kafka cluster by the Kafka protocol alone."""

import logging

import broker.protocol  # noqa: F401 (before kio: it keeps Hypothesis out)

# What aiokafka logs on its own (every refused connection, every retry) reaches people through the
# errors of control.kafka.errors, once and with a next step.
logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
