// Which columns of a table are shown: by the address, by this browser, else those that have room.

import { keepInUrl } from "./address.js";
import { NARROW_PX, fitTable } from "./fit.js";
import { MARK_COLUMN } from "./marks.js";
import { whenRowsCome, withGrids } from "./rows.js";
import { inBrowser } from "./storage.js";

// Columns by the operator's choice, which the address line keeps; null while there is none.
function chosenColumns() {
  const words = new URLSearchParams(window.location.search).get("cols");
  return words ? words.split(",").flatMap((id) => (id === "lag" ? ["lag", "max_lag"] : id)) : null;
}

// Which columns this browser hides in tables of a kind; views leave out columns of their own.
function hiddenColumns(id) {
  return JSON.parse(inBrowser.get(id) || "null");
}

function keptColumns(id, options) {
  const hidden = hiddenColumns(id);
  return hidden && options.map((it) => it.value).filter((value) => !hidden.includes(value));
}

function keepColumns(id, options, wanted) {
  const values = options.map((option) => option.value);
  const hidden = (hiddenColumns(id) || []).filter((value) => !values.includes(value));
  hidden.push(...values.filter((value) => !wanted.includes(value)));
  inBrowser.set(id, JSON.stringify(hidden));
}

function columnWords(wanted, options) {
  const isAll = wanted.length === options.length;
  return isAll ? "columns" : `columns ${wanted.length} of ${options.length}`;
}

const fitted = {};
const isFitted = (id, wanted) => fitted[id] && String(fitted[id]) === String(wanted);

export function showColumns(api) {
  const box = document.querySelector(".grid[id]");
  if (!box) return;
  const chosen = chosenColumns();
  const shown = fitTable(api, box, chosen);
  if (box.clientWidth < NARROW_PX && !chosen) lagInSight(api);
  const id = "columns-" + box.id.replace(/^grid-/, "");
  const first = api.getColumns().find((it) => it.getPinned() && it.getColId() !== MARK_COLUMN);
  const others = shown.filter((it) => it !== MARK_COLUMN && (!first || it !== first.getColId()));
  if (chosen || isFitted(id, others)) return;
  fitted[id] = others;
  window.dash_clientside.set_props(id, { value: others });
}

whenRowsCome(() => withGrids(showColumns));

// A phone has no room for topic, partition, status and lag: of these four a status may be cut off.
function lagInSight(api) {
  const ids = api.getColumns().map((column) => column.getColId());
  const place = ids.indexOf("status");
  const lag = ids.find((id) => id === "lag" || id === "max_lag");
  if (ids.includes("partition") && ids.indexOf(lag) > place) api.moveColumns([lag], place);
}

// The address line names the columns that are chosen; where a path names none, those that this
// browser chose last for such a table, else those that have room. Nothing has triggered a table's
// first call.
export function columnsChosen(wanted, options, id) {
  const isFirst = window.dash_clientside.callback_context.triggered.length === 0;
  if (isFirst) delete fitted[id];
  const kept = isFirst && !chosenColumns() ? keptColumns(id, options) : null;
  if (kept && kept.length) {
    keepInUrl({ cols: kept.join(",") });
    window.setTimeout(() => window.dash_clientside.set_props(id, { value: kept }));
    return columnWords(kept, options);
  }
  const shown = options.map((option) => option.value).filter((it) => (wanted || []).includes(it));
  const isOwnChoice = !isFirst && (chosenColumns() || !isFitted(id, shown));
  if (isOwnChoice) {
    keepColumns(id, options, shown);
    keepInUrl({ cols: shown.join(",") });
  }
  withGrids(showColumns);
  return columnWords(shown, options);
}

// Back to the columns that have room.
document.addEventListener("click", ({ target }) => {
  const button = target.closest(".columns-fit");
  if (!button) return;
  const id = button.parentElement.querySelector(".column-list").id;
  inBrowser.remove(id);
  keepInUrl({ cols: "" });
  delete fitted[id];
  withGrids(showColumns);
});
