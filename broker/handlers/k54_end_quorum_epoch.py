"""EndQuorumEpoch, version 1, between our nodes only.

Behaviour: a leader that resigns asks another voter to elect at once.
"""

from broker.handlers.quorum_requests import quorum_api

quorum_api(54, version=1)
