// The moment that the page looks at: now, or a past one that stands still.

import { isSame, keepInUrl, moment } from "./address.js";
import { heard } from "./connection.js";
import { refreshGrids } from "./grids.js";

const none = () => window.dash_clientside.no_update;
let shownPast = "";

// All that a beat of the server changes, in one answer.
export function hear(beat, isPaused, time, tab, shown, drawn) {
  heard(beat, tab);
  const next = tick(beat && beat.news, isPaused, time, shown);
  if (next === none()) return [none(), none()];
  refreshGrids();
  return [next, chartTick(next, drawn)];
}

// A page that looks at the past is told so once, and then stands still; one that came with
// what is pushed first shows it already.
function tick(pushed, isPaused, time, shown) {
  const past = (time && time.at) || "";
  const isNew = past !== shownPast;
  shownPast = past;
  if (past) return isNew ? { past } : none();
  return (isPaused && !isNew) || !pushed || isSame(pushed, shown || {}) ? none() : pushed;
}

// Charts of a stretch of time are drawn anew each five seconds, in all tabs at once: one of ten
// minutes moves by five pixels in between.
const CHART_STEP_MS = 5000;
let drawing = 0;

function chartTick(tick, shown) {
  const step = ({ past, built_ms: builtMs }) => past || Math.floor(builtMs / CHART_STEP_MS);
  window.clearTimeout(drawing);
  if (!tick || step(tick) !== step(shown || {})) return tick || none();
  const draw = () => window.dash_clientside.set_props("chart-tick", { data: tick });
  if (!isSame(tick, shown)) drawing = window.setTimeout(draw, CHART_STEP_MS); // It was the last.
  return none();
}

export function togglePause(clicks) {
  const isPaused = clicks % 2 === 1;
  document.documentElement.dataset.paused = isPaused ? "yes" : "no";
  return [isPaused, isPaused ? "▶" : "❚❚"];
}

export function readTime(pathname, search, apply, now, back, at, range, before) {
  const cause = window.dash_clientside.callback_context.triggered_id;
  const wanted = new URLSearchParams(search || "");
  let time = before || {};
  if (cause === "time-apply") time = { at: moment((at || "").trim()), range };
  else if (cause === "time-now" || cause === "past-now") time = {};
  else if (wanted.get("at") || wanted.get("range")) {
    time = { at: moment(wanted.get("at") || ""), range: wanted.get("range") || "" };
  }
  document.documentElement.dataset.past = time.at ? "yes" : "no";
  keepInUrl({ at: time.at, range: time.range === "10m" ? "" : time.range });
  return isSame(time, before || {}) ? none() : time;
}

export const closeTime = () =>
  window.dash_clientside.callback_context.triggered_id === "time-button";
