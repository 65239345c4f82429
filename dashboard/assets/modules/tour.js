// The tour (dashboard/page_frame/tour.py): a step at a time, on its view, its thing highlighted.

import { navigate } from "./address.js";
import { closeDialogs, isDialogOpen } from "./dialogs.js";
import { inBrowser, inTab } from "./storage.js";
import { toast } from "./toast.js";

const BEGAN = "partiscope-tour-began";
const STEP = "partiscope-tour-step";
const STARTS = ["/", "/overview"];
const LOOK_AGAIN_MS = 120;
const LOOKS_MAX = 60;
let place = -1;
let cameFrom = "";
let isOpened = false;
let look = 0;

const bar = () => document.getElementById("tour");
const steps = () => JSON.parse(bar().dataset.steps);
export const isTouring = () => place >= 0;

// A sheet of its own: whatever a view draws anew, what the step points to stays highlighted.
const highlight = document.createElement("style");
document.head.appendChild(highlight);

function bottomOf(selector) {
  const element = document.querySelector(selector);
  const isSticky = element && window.getComputedStyle(element).position === "sticky";
  return isSticky ? element.offsetHeight : 0;
}

// Below what stays above while the page scrolls.
function drawHighlight(at) {
  const above = bottomOf(".top-bar") + bottomOf(".nav");
  bar().style.top = `${above}px`;
  const room = above + bar().offsetHeight + 14;
  highlight.textContent = `${at} { outline: 3px solid var(--accent); outline-offset: 3px;`
    + ` border-radius: 12px; scroll-margin: ${room}px 0 14px; }`;
}

// Of what is taller than the window, its beginning has to be in sight.
function isInSight(thing) {
  const { top, bottom } = thing.getBoundingClientRect();
  const isWhole = bottom <= window.innerHeight;
  return top >= bar().getBoundingClientRect().bottom && (isWhole || top < window.innerHeight / 2);
}

// Brings the thing into sight once it stands still; whoever scrolls by himself is let be.
function showThing(at, looks, before) {
  const [thing] = document.querySelectorAll(at);
  const top = thing && thing.getBoundingClientRect().top + window.scrollY;
  if (thing && top === before && !isInSight(thing)) {
    const isTall = thing.offsetHeight > window.innerHeight / 2;
    thing.scrollIntoView({ block: isTall ? "start" : "nearest" });
  }
  if (looks < LOOKS_MAX) {
    look = window.setTimeout(() => showThing(at, looks + 1, top), LOOK_AGAIN_MS);
  }
}

const letBe = () => window.clearTimeout(look);
for (const kind of ["wheel", "touchmove", "keydown", "pointerdown"]) {
  window.addEventListener(kind, letBe, { capture: true, passive: true });
}

function show(wanted) {
  const { path, at, title, words } = steps()[wanted];
  place = wanted;
  inTab.set(STEP, place);
  bar().hidden = false;
  bar().querySelector(".tour-title").textContent = `${place + 1} of ${steps().length}: ${title}`;
  bar().querySelector(".tour-words").textContent = words;
  bar().querySelector(".tour-back").disabled = place === 0;
  const isLast = place === steps().length - 1;
  bar().querySelector(".tour-next").textContent = isLast ? "Done" : "Next";
  const here = (window.location.pathname + window.location.search).slice(1);
  if (here !== path) navigate(path);
  drawHighlight(at);
  letBe();
  showThing(at, 0);
}

// Who ends it at its first step has seen enough: the view that was open comes back.
export function endTour() {
  if (place === 0 && cameFrom) navigate(cameFrom);
  place = -1;
  inTab.remove(STEP);
  letBe();
  bar().hidden = true;
  highlight.textContent = "";
  toast(bar().dataset.again);
}

export function stepTour(by) {
  const wanted = place + by;
  if (wanted >= steps().length) endTour();
  else if (wanted >= 0) show(wanted);
}

// Who has nothing focused goes on by Enter; a field or a dialog keeps its keys.
function begin() {
  cameFrom = window.location.pathname.slice(1) + window.location.search || "overview";
  show(0);
  if (document.activeElement === document.body && !isDialogOpen()) {
    bar().querySelector(".tour-next").focus();
  }
}

// A page that is loaded again, by the viewer or by itself, goes on where it was.
function goesOn() {
  const kept = inTab.get(STEP);
  const step = kept === null ? null : steps()[kept];
  const isHere = step && window.location.pathname === "/" + step.path.split("?")[0];
  if (isHere) show(Number(kept));
  else inTab.remove(STEP);
  return Boolean(isHere);
}

// By itself once in a browser, and only to who has just opened the page without naming a view:
// whoever follows a link is at work.
export function greet(pathname) {
  const isFirst = !isOpened;
  isOpened = true;
  if (!isFirst || !bar() || goesOn()) return;
  const isGreeted = bar().dataset.offer === "once" && STARTS.includes(pathname || "/");
  if (!isGreeted || window.location.search) return;
  if (inBrowser.get(BEGAN)) return;
  inBrowser.set(BEGAN, "yes");
  begin();
}

document.addEventListener("click", ({ target }) => {
  if (target.closest(".tour-next")) stepTour(1);
  else if (target.closest(".tour-back")) stepTour(-1);
  else if (target.closest(".tour-end")) endTour();
  else if (target.closest("#tour-again")) {
    closeDialogs();
    window.setTimeout(begin, 60);
  }
});
