// The palette and other dialogs of the frame.

import { click, navigate } from "./address.js";
import { FOCUS_MS_MAX, focusSoon } from "./focus.js";
import { operate } from "./operations.js";

export function closeDialogs() {
  for (const id of ["operation-dialog", "palette", "help", "time-dialog"]) {
    window.dash_clientside.set_props(id, { opened: false });
  }
}

// Back leads to another view: what was about to be confirmed does not stay over it.
window.addEventListener("popstate", closeDialogs);

export function isDialogOpen() {
  return document.querySelector('[role="dialog"]') !== null;
}

export function chosen(entry) {
  closeDialogs();
  if (entry.dataset.go) navigate(entry.dataset.go);
  else if (entry.dataset.form) window.setTimeout(() => operate(entry.dataset.form), 50);
  else window.setTimeout(() => click(entry.dataset.button), 50);
}

// In the palette the field keeps the focus; arrows move a mark, Enter takes the marked entry.
export function paletteKey(event) {
  const entries = Array.from(document.querySelectorAll(".palette-entry"));
  let place = entries.findIndex((entry) => entry.classList.contains("marked"));
  if (event.key === "Enter") {
    const entry = entries[Math.max(place, 0)];
    if (entry) chosen(entry);
    return;
  }
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!step || !entries.length) return;
  event.preventDefault();
  entries.forEach((entry) => entry.classList.remove("marked"));
  place = (place + step + entries.length) % entries.length;
  entries[place].classList.add("marked");
  entries[place].scrollIntoView({ block: "nearest" });
}

export function togglePalette() {
  focusSoon("palette-query", Date.now() + FOCUS_MS_MAX);
  return [true, ""];
}

export const toggleHelp = (clicks, isOpen) => !isOpen;
