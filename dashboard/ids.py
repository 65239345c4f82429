"""Ids of components that callbacks or tests know. Two parts of the page never share one."""

from typing import Final

# The frame around every view.
LOCATION: Final = "location"
THING: Final = "thing"
MISSING: Final = "missing"
EXISTING: Final = "existing"
CONTENT: Final = "content"
NAV: Final = "nav"
KEYMAP: Final = "keymap"
PROVIDER: Final = "provider"
SCHEME_CHOICE: Final = "scheme-choice"
SCHEME: Final = "scheme"
SCHEME_SWITCH: Final = "scheme-switch"
PUSHED: Final = "pushed"
TICK: Final = "tick"
PAUSED: Final = "paused"
PAUSE_BUTTON: Final = "pause-button"
HELP: Final = "help"
HELP_BUTTON: Final = "help-button"
AGE: Final = "age"
BEAT: Final = "beat"
TAB: Final = "tab"
HEALTH: Final = "health"
JOB: Final = "job"
JOB_TILES: Final = "job-tiles"
JOB_TIMES: Final = "job-times"
JOB_INPUT: Final = "job-input"
JOB_STATE: Final = "job-state"
CLUSTERS: Final = "clusters"
ALL_CLUSTERS: Final = "all-clusters"
DENIED: Final = "denied"
OPENER: Final = "opener"
REDIRECT: Final = "redirect"
OPENER_WHY: Final = "opener-why"
HEAD_CLUSTER: Final = "head-cluster"
HEAD_BROKERS: Final = "head-brokers"
HEAD_CONTROLLER: Final = "head-controller"
HEAD_IN: Final = "head-in"
HEAD_OUT: Final = "head-out"
HEAD_MOVING: Final = "head-moving"

# Overview.
FINDINGS: Final = "findings"
ALL_FINDINGS: Final = "all-findings"
BROKER_MEASURE: Final = "broker-measure"
BROKER_BARS: Final = "broker-bars"
BROKER_TABLE: Final = "broker-table"
HEAT_MEASURE: Final = "heat-measure"
HEAT_MAP: Final = "heat-map"
GROUP_TABLE: Final = "group-table"
RACK_TABLE: Final = "rack-table"
LAG_CHART: Final = "lag-chart"
THROUGHPUT_CHART: Final = "throughput-chart"
TILES: Final = "tiles"

# A partition, a group, a topic, a broker: details.
DETAIL_PATH: Final = "detail-path"
DETAIL_TILES: Final = "detail-tiles"
DETAIL_REPLICAS: Final = "detail-replicas"
DETAIL_GROUPS: Final = "detail-groups"
DETAIL_SEGMENTS: Final = "detail-segments"
DETAIL_SEGMENT_TABLE: Final = "detail-segment-table"
DETAIL_THROUGHPUT: Final = "detail-throughput"
DETAIL_LAG: Final = "detail-lag"
DETAIL_SIZE: Final = "detail-size"
TOPIC_PATH: Final = "topic-path"
TOPIC_TILES: Final = "topic-tiles"
TOPIC_THROUGHPUT: Final = "topic-throughput"
GROUP_PATH: Final = "group-path"
GROUP_TILES: Final = "group-tiles"
GROUP_LAG: Final = "group-lag"
BROKER_PATH: Final = "broker-path"
BROKER_TILES: Final = "broker-tiles"
BROKER_THROUGHPUT: Final = "broker-throughput"

# The map.
SKEW_CHART: Final = "skew-chart"
CELLS_FIGURE: Final = "cells-figure"
CELLS_MEASURE: Final = "cells-measure"
CELLS_FILTER: Final = "cells-filter"
CELLS_OPENED: Final = "cells-opened"
CELLS_UNDER: Final = "cells-under"
CELLS_TABLE: Final = "cells-table"
MAP_MEASURE: Final = "map-measure"
MAP_FIGURE: Final = "map-figure"


def grid(kind: str) -> str:
    """The table of one kind: ``partitions``, ``topics``, ``groups``, ``brokers``, ``lags``."""
    return f"grid-{kind}"


def grid_filter(kind: str) -> str:
    """Its filter field."""
    return f"filter-{kind}"


def grid_count(kind: str) -> str:
    """Its line of counts, or of what is wrong with the filter."""
    return f"count-{kind}"


def grid_scope(kind: str) -> str:
    """Where it keeps the topic or group that it is limited to."""
    return f"scope-{kind}"


# Plan and moves.
MOVES_PUSHED: Final = "moves-pushed"
PLAN_BUTTON: Final = "plan-button"
PLAN_RESULT: Final = "plan-result"
PLAN_CHOICES: Final = "plan-choices"
PLAN_CHOICE: Final = "plan-choice"
PLAN_REVIEW: Final = "plan-review"
PLAN_RUN: Final = "plan-run"
PLAN_LAST: Final = "plan-last"
PLAN_CONFIRM: Final = "plan-confirm"
PLAN_TYPE: Final = "plan-type"
PLAN_NOTE: Final = "plan-note"
PLAN_REVIEWED: Final = "plan-reviewed"
PLAN_TYPED: Final = "plan-typed"
PLAN_OUTCOME: Final = "plan-outcome"
PLAN_EDIT: Final = "plan-edit"
PLAN_ENTRIES: Final = "plan-entries"
PLAN_NOW: Final = "plan-now"
PLAN_AFTER: Final = "plan-after"
PLAN_CURVE: Final = "plan-curve"
PLAN_STEP: Final = "plan-step"
PLAN_MADE: Final = "plan-made"
PLAN_DEFAULTS: Final = "plan-defaults"
PLAN_MAP_BACK: Final = "plan-map-back"
PLAN_MAP_SHOWN: Final = "plan-map-shown"
PLAN_MAP_NOW: Final = "plan-map-now"
PLAN_MAP_PLANNED: Final = "plan-map-planned"
MOVES_TABLE: Final = "moves-table"
MOVE_ID: Final = "move-id"
MOVE_BUTTONS: Final = "move-buttons"
MOVE_BODY: Final = "move-body"
MOVE_SAID: Final = "move-said"
MOVE_ASKED: Final = "move-asked"
MOVE_QUESTION: Final = "move-question"
MOVE_TYPED: Final = "move-typed"
MOVE_PLAN_ANEW: Final = "move-plan-anew"
MOVE_CONFIRM: Final = "move-confirm"
MOVE_LEAVE: Final = "move-leave"
MOVE_RATE: Final = "move-rate"
MOVE_ACTIONS: Final = ("pause", "resume", "cancel", "cancel_after_wave", "rollback", "throttle")

# Produce.
PRODUCE_PREVIEW: Final = "produce-preview"
PRODUCE_SEND: Final = "produce-send"
PRODUCE_TYPED: Final = "produce-typed"
PRODUCE_STOP: Final = "produce-stop"
PRODUCE_SESSION: Final = "produce-session"
PRODUCE_RESULT: Final = "produce-result"
PRODUCE_CHART: Final = "produce-chart"
PRODUCE_DONE: Final = "produce-done"
PRODUCE_FILE: Final = "produce-file"
PRODUCE_FILE_NONE: Final = "produce-file-none"
PRODUCE_FILE_WORDS: Final = "produce-file-words"
PRODUCE_LINES: Final = "produce-lines"

# The dialog of operations.
OPERATION: Final = "operation"
OPERATION_DIALOG: Final = "operation-dialog"
OPERATION_BODY: Final = "operation-body"
OPERATION_SUBMIT: Final = "operation-submit"
OPERATION_OUTCOME: Final = "operation-outcome"
OPERATION_TYPED: Final = "operation-typed"
OPERATION_PREVIEWED: Final = "operation-previewed"
OPERATION_CONFIRMATION: Final = "operation-confirmation"
OPERATION_WITHDRAWN: Final = "operation-withdrawn"
OPERATION_CONFIRM: Final = "operation-confirm"

# Browse.
BROWSE_TOPIC: Final = "browse-topic"
BROWSE_PARTITION: Final = "browse-partition"
BROWSE_START: Final = "browse-start"
BROWSE_AT: Final = "browse-at"
BROWSE_WANTED: Final = "browse-wanted"
BROWSE_READ: Final = "browse-read"
BROWSE_RESULT: Final = "browse-result"
BROWSE_FOLLOW: Final = "browse-follow"
BROWSE_FOLLOWS: Final = "browse-follows"
BROWSE_MORE: Final = "browse-more"
BROWSE_REST: Final = "browse-rest"

# What if, journal.
LOSS: Final = "loss"
LOSS_ANSWER: Final = "loss-answer"
JOURNAL_TABLE: Final = "journal-table"

# The palette, and the time of charts.
PALETTE: Final = "palette"
PALETTE_QUERY: Final = "palette-query"
PALETTE_LIST: Final = "palette-list"
TIME: Final = "time"
TIME_DIALOG: Final = "time-dialog"
TIME_APPLY: Final = "time-apply"
TIME_NOW: Final = "time-now"
TIME_AT: Final = "time-at"
TIME_RANGE: Final = "time-range"
TIME_SHOWN: Final = "time-shown"
COPY_BUTTON: Final = "copy-button"
PALETTE_BUTTON: Final = "palette-button"
TIME_BUTTON: Final = "time-button"
PAST_BAR: Final = "past-bar"
PAST_WORDS: Final = "past-words"
PAST_NOW: Final = "past-now"
NOTE: Final = "note"


def grid_columns_word(kind: str) -> str:
    """How many of its columns are shown."""
    return f"columns-word-{kind}"


def grid_columns(kind: str) -> str:
    """The choice of columns beside a grid."""
    return f"columns-{kind}"


def move_button(action: str) -> str:
    """One of ``MOVE_ACTIONS``."""
    return f"move-{action}"
