// What the page does while it hears nothing from its server: it says so and counts the age on.

const LOOK_MS = 500;
// The server tells the age each second.
const SILENT_MS_MAX = 2400;
const FIRST_MS_MAX = 10000;
const REJOIN_MS_MAX = 4000;
const beat = {
  at: performance.now(), toldAt: null, ageMs: null, answeredAt: 0, isLost: false,
};

function showAge(words, tone) {
  const age = document.getElementById("age");
  if (!age) return;
  age.textContent = words;
  age.className = `age tone-${tone}`;
}

// A view that was asked for while the connection was lost is not asked for again by itself.
function fetchView() {
  const main = document.getElementById("content");
  if (main && main.dataset.shown !== window.location.pathname) window.location.reload();
}

// Tabs of one browser share a connection to the server, so this one says when it goes; of all that
// it would still be told for as long as another tab is open.
let tab = "";
window.addEventListener("pagehide", () => {
  if (tab) navigator.sendBeacon("/tab-gone/" + tab);
});
window.addEventListener("pageshow", ({ persisted }) => {
  if (persisted) window.location.reload();
});

export function heard(told, name) {
  tab = name;
  if (!told || told.now_ms === beat.toldAt) return;
  const isBack = beat.isLost;
  const { age_ms: ageMs, now_ms: toldAt } = told;
  Object.assign(beat, { at: performance.now(), toldAt, ageMs, answeredAt: 0, isLost: false });
  showAge(told.words, told.tone);
  if (!isBack) return;
  document.documentElement.dataset.lost = "no";
  window.setTimeout(fetchView, REJOIN_MS_MAX / 2);
}

function ageWords(ms) {
  const s = Math.round(ms / 1000);
  if (s < 120) return `${s} s`;
  return s < 7200 ? `${Math.round(s / 60)} min` : `${Math.round(s / 3600)} h`;
}

// The connection is lost where the server does not answer a plain request either; one that does is
// late with its news, and the age counts on.
function look() {
  const silentMs = performance.now() - beat.at;
  const mostMs = beat.toldAt ? SILENT_MS_MAX : FIRST_MS_MAX;
  if (silentMs < mostMs / 2 || !document.getElementById("age")) return;
  rejoin();
  if (silentMs < mostMs) return;
  beat.isLost = true;
  const isAnswered = beat.answeredAt > 0;
  document.documentElement.dataset.lost = isAnswered ? "no" : "yes";
  const age = beat.ageMs === null ? "" : `${ageWords(beat.ageMs + silentMs)} ago`;
  if (isAnswered) showAge(`▲ ${age || "no news"}`, "warning");
  else showAge(`✖ connection lost${age && ` · ${age}`}`, "critical");
}

// A server that answers plain requests again may still not be joined by Dash's own means.
function rejoin() {
  const since = beat.at;
  window.fetch("/assets/clusters.css", { cache: "no-store" }).then(() => {
    if (beat.at !== since) return;
    beat.answeredAt = beat.answeredAt || performance.now();
    const isLate = performance.now() - beat.answeredAt > REJOIN_MS_MAX;
    if (beat.isLost && isLate) fetchView();
  }, () => { beat.answeredAt = 0; });
}

window.setInterval(look, LOOK_MS);
