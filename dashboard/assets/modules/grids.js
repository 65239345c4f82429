// Tables: rows come anew, and columns and heights fit the window.

import { keepInUrl, navigate } from "./address.js";
import { showColumns } from "./columns.js";
import { cutMiddle, keepWidth, overflow } from "./fit.js";
import { MARK_COLUMN } from "./marks.js";
import { askAnew, withGrids } from "./rows.js";
import { select } from "./scope.js";

// Rows are asked for block by block, and a refresh puts all blocks at the end of the line: where
// answers take longer than news, the rows of a jump would wait for ever. So a refresh waits until
// nothing is asked for. What is never answered (the server was started anew) is asked again.
const LOOK_AGAIN_MS = 40;
const ANSWERED_MS_MAX = 10000;
const waiting = new WeakSet();

function refreshGrid(api, since) {
  if (api.isDestroyed() || (waiting.has(api) && !since)) return;
  waiting.delete(api);
  const blocks = Object.values(api.getCacheBlockState() || {});
  const isIdle = blocks.every((block) => ["loaded", "failed"].includes(block.pageStatus));
  const began = since || Date.now();
  if (isIdle) api.refreshInfiniteCache();
  else if (Date.now() - began > ANSWERED_MS_MAX) api.purgeInfiniteCache();
  else {
    waiting.add(api);
    window.setTimeout(() => refreshGrid(api, began), LOOK_AGAIN_MS);
  }
}

export const refreshGrids = () => withGrids((api) => refreshGrid(api));

// A table follows its filter while that is typed; Dash would answer some 50 ms later.
const FILTER_PAUSE_MS = 30;
let filterTimer = 0;
document.addEventListener("input", ({ target }) => {
  if (!target.closest(".filter-input")) return;
  window.clearTimeout(filterTimer);
  filterTimer = window.setTimeout(() => {
    keepInUrl({ q: target.value });
    withGrids(askAnew);
  }, FILTER_PAUSE_MS);
});

document.addEventListener("change", ({ target }) => {
  if (!target.closest(".internal-switch")) return;
  keepInUrl({ internal: target.checked ? "yes" : "" });
  withGrids(askAnew);
});

// What a grid tells late may come when its view is gone already.
const whileThere = (act) => (params) => (params.api.isDestroyed() ? undefined : act(params));

export const fitColumns = whileThere((params) => showColumns(params.api));

// A short table ends with its last row; a long one fills the window and scrolls.
const ROW_PX = 34;
const HEAD_PX = 38;
const SCROLLBAR_PX = 14;
const ROWS_MIN = 3;

export const fitHeight = whileThere((params) => {
  const box = document.querySelector(".grid[id]");
  // While a filter or a sort is answered the table stays as tall as it is.
  if (!box || !params.api.isLastRowIndexKnown()) return;
  const rows = Math.max(params.api.getDisplayedRowCount(), ROWS_MIN);
  const scrollbar = overflow(params.api, box) > 0 ? SCROLLBAR_PX : 0;
  const wanted = HEAD_PX + rows * ROW_PX + scrollbar;
  box.style.maxHeight = wanted + "px";
  box.style.minHeight = Math.min(wanted, 320) + "px";
});

const isName = (it) => it.getPinned() === "left" && it.getColId() !== MARK_COLUMN;

// A width by hand (dragged, or by a double click) is kept; any other but ours is made to fit again.
const BY_HAND = ["uiColumnResized", "autosizeColumns"];
export const columnResized = whileThere((params) => {
  const { api, column, finished, source } = params;
  if (!finished || source === "api") return;
  if (column && BY_HAND.includes(source)) keepWidth(params);
  else showColumns(api);
});

export { cutMiddle };

export const keepSort = whileThere((params) => {
  const sorted = params.api.getColumnState().find((column) => column.sort);
  keepInUrl({ sort: sorted ? (sorted.sort === "desc" ? "-" : "") + sorted.colId : "" });
});

export const rememberRow = whileThere((params) => {
  const rows = params.api.getSelectedRows();
  select(rows.length ? rows[0].path : "");
});

// Of a group one row is always selected, the worst at first: what its keys and buttons act on is
// seen, as by the cursor in the terminal.
export const selectRow = whileThere(({ api }) => {
  const [row] = api.getSelectedRows();
  const first = api.getDisplayedRowAtIndex(0);
  if (row) select(row.path);
  else if (first && first.data) first.setSelected(true);
});

// The colour of a cell's tone; empty takes away that of the row which stood there before.
export const toneStyle = (params) => {
  const tone = params.data && params.data[params.colDef.field + "__tone"];
  return { color: tone ? `var(--${tone})` : "" };
};

export const openRow = (params) => params.data && navigate(params.data.path);

export const openRowOnEnter = (params) => {
  if (params.event && params.event.key === "Enter" && params.data) navigate(params.data.path);
};

export const openRowOfFirstColumn = (params) => {
  if (params.data && params.column && isName(params.column)) {
    navigate(params.data.path);
  }
};
