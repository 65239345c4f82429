"""Samples of any Kafka cluster, by the Kafka protocol alone: the same as our brokers report.

    ClusterImage    what Metadata and its kin tell, by difference (pure)
    GroupImages     groups and committed offsets of one coordinator (pure)
    BrokerSource    one broker's requests: groups, offsets, log directories
    Collector       turns: commits everywhere, then end offsets everywhere, each broker on its own
    Delivery        rounds into the metrics topic of the bus

Nothing is written to the watched cluster. A broker that is slow or down delays its own rows only.
"""
