"""FetchSnapshot, version 1, between our nodes only.

Behaviour: bytes of a snapshot of the metadata log, for a voter whose log ends before ours starts
(KIP-630). SNAPSHOT_NOT_FOUND when a newer one has replaced it: the voter asks by Fetch again.
"""

from broker.handlers.quorum_requests import quorum_api

quorum_api(59, version=1)
