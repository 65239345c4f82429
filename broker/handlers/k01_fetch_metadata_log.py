"""Fetch, version 18, on the controller listener: the metadata log between our nodes.

Behaviour: KRaft's fetch of `__cluster_metadata-0`. The fetch offset acknowledges what the
follower has flushed; waits up to max_wait for records or a higher high watermark (KIP-1166).
"""

from broker.handlers.quorum_requests import quorum_api

quorum_api(1, version=18)
