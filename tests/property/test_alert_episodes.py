"""Every episode that lasts long enough is told once and resolved once, and nothing else is.

The oracle walks one subject's history by the definition alone. Receivers fail, and the process is
killed and loads what was saved, at random.
"""

from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from control.alerts.alert import Alert
from control.alerts.machine import AlertMachine, ReceiverRules, Tell
from control.alerts.readings import Match, Reading, RuleReading
from control.alerts.rules import AlertRule, parse_condition

STEP_MS = 1_000
START_MS = 1_700_000_000_000
YES, NO, UNKNOWN = "yes", "no", "unknown"
SUBJECTS = ("a", "b")
moments = st.lists(
    st.fixed_dictionaries({it: st.sampled_from((YES, NO, UNKNOWN)) for it in SUBJECTS}),
    max_size=60,
)


@dataclass(slots=True)
class _Saved:
    """What a bus would keep, and two receivers that may refuse."""

    alerts: dict[str, Alert] = field(default_factory=dict)
    taken: dict[str, list[tuple[Tell, str, str]]] = field(default_factory=dict)

    def save(self, machine: AlertMachine, changed: list[Alert]) -> None:
        for alert in changed:
            kept = machine.alerts.get(alert.episode)
            if kept is None:
                self.alerts.pop(alert.episode, None)
            else:
                self.alerts[alert.episode] = kept


def _rule(for_steps: int, resolve_steps: int) -> AlertRule:
    return AlertRule(
        name="r",
        when="",
        condition=parse_condition(f"groups: lag>1 for {for_steps * STEP_MS}ms"),
        receivers=("x", "y"),
        resolve_after_ms=resolve_steps * STEP_MS,
    )


def _machine(rule: AlertRule) -> AlertMachine:
    return AlertMachine([rule], {"x": ReceiverRules(), "y": ReceiverRules()})


def _reading(at_ms: int, told: dict[str, str]) -> Reading:
    of_rule = RuleReading(
        matches={it: Match(subject=it) for it, how in told.items() if how == YES},
        unknown=frozenset(it for it, how in told.items() if how == UNKNOWN),
    )
    return Reading(cluster="c", at_ms=at_ms, rules={"r": of_rule})


def _episodes(history: list[str], for_steps: int, resolve_steps: int) -> list[bool]:
    """Whether each told episode has ended, by the definition."""
    found, held, is_firing, clear_since = list[bool](), None, False, None
    before = NO
    for place, now in enumerate(history):
        if now == YES:
            clear_since = None
            held = 0 if held is None else held + (1 if before == YES else 0)
            if not is_firing and held >= for_steps:
                found.append(False)
                is_firing = True
        elif now == NO:
            if is_firing:
                clear_since = place if clear_since is None else clear_since
                if place - clear_since >= resolve_steps:
                    found[-1], is_firing, held, clear_since = True, False, None, None
            else:
                held = None
        before = now
    return found


@settings(deadline=None)
@given(history=moments, for_steps=st.integers(0, 4), resolve_steps=st.integers(0, 4))
def test_each_long_episode_is_told_once_and_resolved_once(
    history: list[dict[str, str]], for_steps: int, resolve_steps: int
) -> None:
    machine, saved = _machine(_rule(for_steps, resolve_steps)), _Saved()
    for step, told in enumerate(history):
        _live(machine, saved, told, step, refusing=set())
    for receiver in ("x", "y"):
        for subject in SUBJECTS:
            expected = _episodes([it[subject] for it in history], for_steps, resolve_steps)
            _check(saved, receiver, subject, expected)
    assert not [it for it in machine.alerts.values() if not it.is_open]


@settings(deadline=None)
@given(
    history=moments,
    resolve_steps=st.integers(0, 3),
    refusing=st.lists(st.sets(st.sampled_from(("x", "y"))), max_size=60),
    kills=st.sets(st.integers(0, 60)),
)
def test_neither_refusals_nor_kills_lose_a_telling(
    history: list[dict[str, str]],
    resolve_steps: int,
    refusing: list[set[str]],
    kills: set[int],
) -> None:
    """A kill loses the clock of a row that matches no more, so only the number of ends may differ:
    every telling still has its end, and an id that comes twice is the same."""
    rule, saved = _rule(0, resolve_steps), _Saved()
    machine = _machine(rule)
    for step, told in enumerate(history):
        refused = refusing[step] if step < len(refusing) else set()
        _live(machine, saved, told, step, refusing=refused, is_killed=step in kills)
        if step in kills:
            machine = _machine(rule)
            machine.load(saved.alerts.values())
    quiet = dict.fromkeys(SUBJECTS, NO)
    for step in range(len(history), len(history) + 12):
        _live(machine, saved, quiet, step, refusing=set())
    for receiver in ("x", "y"):
        taken = list(dict.fromkeys(saved.taken.get(receiver, [])))  # a second copy is dropped
        for subject in SUBJECTS:
            kinds = [kind for kind, name, _ in taken if name == subject]
            assert kinds == [Tell.FIRES, Tell.RESOLVES] * (len(kinds) // 2)
    told_to = [{it for _, _, it in saved.taken.get(name, [])} for name in ("x", "y")]
    assert told_to[0] == told_to[1]
    assert bool(told_to[0]) == any(YES in it.values() for it in history)
    assert not machine.alerts
    assert not saved.alerts


def _live(
    machine: AlertMachine,
    saved: _Saved,
    told: dict[str, str],
    step: int,
    *,
    refusing: set[str],
    is_killed: bool = False,
) -> None:
    at_ms = START_MS + step * STEP_MS
    saved.save(machine, machine.handle(_reading(at_ms, told)))
    while due := [it for it in machine.due((), at_ms) if it.receiver not in refusing]:
        for telling in due:
            entry = (telling.kind, telling.alert.subject, telling.id)
            saved.taken.setdefault(telling.receiver, []).append(entry)
        if is_killed:
            return  # it was sent, and nobody could write that down
        saved.save(machine, machine.take(due, at_ms))
    saved.save(machine, machine.forget_told((), at_ms))


def _check(saved: _Saved, receiver: str, subject: str, expected: list[bool]) -> None:
    taken = [it for it in saved.taken.get(receiver, []) if it[1] == subject]
    kinds = [kind for kind, _, _ in taken]
    wanted = [each for ended in expected for each in _kinds(ended=ended)]
    assert kinds == wanted
    assert len({it for _, _, it in taken}) == len(taken)


def _kinds(*, ended: bool) -> list[Tell]:
    return [Tell.FIRES, Tell.RESOLVES] if ended else [Tell.FIRES]
