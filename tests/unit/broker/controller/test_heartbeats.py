from broker.controller.heartbeats import BrokerSessions


def test_session_lasts_from_the_last_sign_of_life() -> None:
    sessions = BrokerSessions(session_timeout_ms=100)
    sessions.touch(1, 1_000)
    sessions.touch(2, 1_050)
    assert sessions.is_valid(1, 1_099)
    assert not sessions.is_valid(1, 1_100)
    assert sessions.expired(1_100) == [1]
    assert sessions.next_deadline_ms() == 1_100
    sessions.end(1)
    assert sessions.next_deadline_ms() == 1_150


def test_new_controller_gives_a_grace_to_who_was_at_work() -> None:
    sessions = BrokerSessions(session_timeout_ms=100)
    sessions.touch(9, 0)
    sessions.begin([1, 2], 1_000, grace_ms=30)
    assert sessions.expired(1_029) == []
    assert sessions.expired(1_030) == [1, 2]
    assert not sessions.is_valid(9, 1_000)


def test_unknown_broker_has_no_session() -> None:
    sessions = BrokerSessions(session_timeout_ms=100)
    assert not sessions.is_valid(1, 0)
    assert sessions.next_deadline_ms() is None
