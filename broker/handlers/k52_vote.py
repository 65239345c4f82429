"""Vote, version 2, between our nodes only.

Behaviour: a voter's vote, or whether it would give one (a pre-vote, KIP-996).
"""

from broker.handlers.quorum_requests import quorum_api

quorum_api(52, version=2)
