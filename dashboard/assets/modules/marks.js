// Marked rows of a list: operations then act on all of them. Marks end with their view.

import { keysShown, withGrids } from "./rows.js";
import { toast, WHY_MS } from "./toast.js";

const ROWS_MAX = 500;
export const MARK_COLUMN = "mark";
const names = new Set();

const bar = () => document.querySelector("main .marks-bar");

export const markedRows = () => (bar() ? Array.from(names) : []);

function show() {
  const place = bar();
  if (!place) return;
  place.querySelector(".marks-of-rows").hidden = !names.size;
  place.querySelector(".marks-count").textContent = names.size ? `${names.size} marked` : "";
  withGrids((api) => api.refreshCells({ columns: [MARK_COLUMN], force: true }));
}

function mark(keys) {
  const isTakenAway = keys.length > 0 && keys.every((key) => names.has(key));
  for (const key of keys) isTakenAway ? names.delete(key) : names.add(key);
  show();
}

export function forgetMarks() {
  names.clear();
  show();
}

// What was asked of the marked rows is done.
export function endMarks() {
  forgetMarks();
  return window.dash_clientside.no_update;
}

// The selected row, as `m` marks it.
export function markSelected() {
  if (!bar()) return toast("m marks a row of topics or groups");
  return withGrids((api) => mark(api.getSelectedRows().map((row) => row.key)));
}

export async function markAll() {
  if (!bar()) return toast("* marks all rows of topics or groups");
  const { keys, count } = await keysShown(bar().dataset.kind, ROWS_MAX);
  if (count > ROWS_MAX) {
    return toast(`${count} rows: at most ${ROWS_MAX} are marked; filter more`, WHY_MS);
  }
  return mark(keys);
}

// The box of one row.
export function MarkBox({ data }) {
  if (!data) return null;
  return window.React.createElement("input", {
    type: "checkbox",
    key: names.has(data.key),
    defaultChecked: names.has(data.key),
    "aria-label": "mark " + data.key,
    onChange: () => mark([data.key]),
  });
}

document.addEventListener("click", ({ target }) => {
  if (target.closest(".mark-all")) markAll();
  else if (target.closest(".mark-none")) forgetMarks();
});
