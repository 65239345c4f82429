// Which columns of a table are shown: by the address, by this browser, by the width.

import { keepInUrl } from "./address.js";
import { withGrids } from "./rows.js";
import { inBrowser } from "./storage.js";

// Columns by the operator's choice, which the address line keeps; null while there is none.
function chosenColumns() {
  const words = new URLSearchParams(window.location.search).get("cols");
  return words ? words.split(",").flatMap((id) => (id === "lag" ? ["lag", "max_lag"] : id)) : null;
}

// Which columns this browser hides in tables of a kind; views leave out columns of their own.
function hiddenColumns(id) {
  return JSON.parse(inBrowser.get(id) || "[]");
}

function keptColumns(id, options) {
  const hidden = hiddenColumns(id);
  const kept = options.map((option) => option.value).filter((value) => !hidden.includes(value));
  return kept.length < options.length ? kept : null;
}

function keepColumns(id, options, wanted) {
  const values = options.map((option) => option.value);
  const hidden = hiddenColumns(id).filter((value) => !values.includes(value));
  hidden.push(...values.filter((value) => !wanted.includes(value)));
  if (hidden.length) inBrowser.set(id, JSON.stringify(hidden));
  else inBrowser.remove(id);
}

function columnWords(wanted, options) {
  const shown = wanted ? wanted.length : options.length;
  return shown === options.length ? "columns" : `columns ${shown} of ${options.length}`;
}

export function showColumns(api) {
  const box = document.querySelector(".grid[id]");
  const width = box ? box.clientWidth : document.documentElement.clientWidth;
  const limit = width && width < 620 ? 1 : 3;
  const chosen = chosenColumns();
  const shown = [];
  const hidden = [];
  for (const column of api.getColumns() || []) {
    const rank = Number((/rank-(\d)/.exec(String(column.getColDef().cellClass)) || [0, 1])[1]);
    const id = column.getColId();
    const isName = column.getPinned() === "left";
    const isShown = isName || (chosen ? chosen.includes(id) : rank <= limit);
    if (column.isVisible() !== isShown) (isShown ? shown : hidden).push(id);
  }
  if (shown.length) api.setColumnsVisible(shown, true);
  if (hidden.length) api.setColumnsVisible(hidden, false);
  if (limit === 1) lagInSight(api);
}

// A phone has no room for topic, partition, status and lag: of these four a status may be cut off.
function lagInSight(api) {
  const ids = api.getColumns().map((column) => column.getColId());
  const place = ids.indexOf("status");
  const lag = ids.find((id) => id === "lag" || id === "max_lag");
  if (ids.includes("partition") && ids.indexOf(lag) > place) api.moveColumns([lag], place);
}

// The address line names the columns that are shown; where a path names none, those that this
// browser chose last for such a table, else all. Nothing has triggered a table's first call.
export function columnsChosen(wanted, options, id) {
  const isFirst = window.dash_clientside.callback_context.triggered.length === 0;
  const kept = isFirst && !chosenColumns() ? keptColumns(id, options) : null;
  if (kept) {
    window.setTimeout(() => window.dash_clientside.set_props(id, { value: kept }));
    return columnWords(kept, options);
  }
  const isAll = !wanted || wanted.length === options.length;
  if (!isFirst && wanted) keepColumns(id, options, wanted);
  keepInUrl({ cols: isAll ? "" : wanted.join(",") });
  withGrids(showColumns);
  return columnWords(wanted, options);
}
