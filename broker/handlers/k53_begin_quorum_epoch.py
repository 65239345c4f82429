"""BeginQuorumEpoch, version 1, between our nodes only.

Behaviour: the leader of a new epoch makes itself known to another voter.
"""

from broker.handlers.quorum_requests import quorum_api

quorum_api(53, version=1)
