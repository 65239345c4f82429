// Which columns of a table have room, and how wide they are: figures are never cut, names in their
// middle. As in the terminal (tui/widgets/row_table.py) columns of a lower rank give way.

import { MARK_COLUMN } from "./marks.js";

const PADDING_PX = 16;
const HANDLE_PX = 6;
const ARROW_PX = 22;
export const NARROW_PX = 620;
const NAME_PX_MIN = { narrow: 112, wide: 150 };
const NAME_SHARE = 0.25;
const TEXT_PX_MAX = 260;
const MEASURED_MAX = 5000;

const pen = document.createElement("canvas").getContext("2d");
const measured = new Map();

// Digits are equally wide (tabular-nums), so that few texts need to be measured.
function textWidth(text) {
  const shape = text.replace(/\d/g, "0");
  if (!measured.has(shape)) {
    if (measured.size >= MEASURED_MAX) measured.clear();
    pen.font = "500 13px " + window.getComputedStyle(document.body).fontFamily;
    measured.set(shape, Math.ceil(pen.measureText(shape).width));
  }
  return measured.get(shape);
}

// Of each table: the widest that its columns have been, and the widths given by a hand.
const known = new WeakMap();
function knownOf(api) {
  if (!known.has(api)) known.set(api, { widest: {}, dragged: {} });
  return known.get(api);
}

const classOf = (column) => String(column.getColDef().cellClass).split(" ");
const rankOf = (column) => Number(/rank-(\d)/.exec(classOf(column).join(" "))?.[1] ?? 1);
const isLong = (column) => classOf(column).includes("long");
const isNumber = (column) => classOf(column).includes("number");

function naturalWidth(api, column) {
  const { widest, dragged } = knownOf(api);
  const id = column.getColId();
  const { minWidth, headerName } = column.getColDef();
  if (id === MARK_COLUMN) return minWidth;
  if (dragged[id]) return dragged[id];
  const arrow = column.getSort() ? ARROW_PX : 0;
  let width = Math.max(widest[id] ?? minWidth, textWidth(headerName) + HANDLE_PX + arrow);
  api.forEachNode(({ data }) => {
    if (data && data[id]) width = Math.max(width, textWidth(data[id]));
  });
  widest[id] = isNumber(column) || isLong(column) ? width : Math.min(width, TEXT_PX_MAX);
  return widest[id] + PADDING_PX;
}

// The table without its scroll bar.
function roomOf(box) {
  const body = box.querySelector(".ag-body-viewport");
  return (body && body.clientWidth) || box.clientWidth;
}

// Columns that are shown, with their widths.
function choice(api, room, chosen) {
  const isNarrow = room < NARROW_PX;
  const nameMin = Math.max(
    NAME_PX_MIN[isNarrow ? "narrow" : "wide"], isNarrow ? 0 : Math.floor(room * NAME_SHARE),
  );
  const columns = (api.getColumns() || []).map((column, place) => ({
    column,
    place,
    isFirst: column.getPinned() === "left",
    natural: naturalWidth(api, column),
    rank: rankOf(column),
  }));
  let left = room;
  const isChosen = (id) => chosen.includes(id);
  const before = (it) => (it.isFirst ? -2 : it.column.getSort() && !chosen ? -1 : it.rank);
  const byRank = (one, other) => before(one) - before(other) || one.place - other.place;
  const shown = [...columns].sort(byRank).filter((it) => {
    it.width = isLong(it.column) ? Math.min(it.natural, nameMin) : it.natural;
    const isEssential = it.isFirst || it.rank === 1 || it.column.getSort();
    const isShown = chosen
      ? it.isFirst || isChosen(it.column.getColId())
      : isEssential || it.width <= left;
    if (isShown) left -= it.width;
    return isShown;
  });
  return { columns, shown, left };
}

// What is left over goes to names that are cut, then to all but the mark.
function spread(shown, left) {
  let rest = Math.max(left, 0);
  for (const it of shown) {
    const more = Math.min(it.natural - it.width, rest);
    it.width += more;
    rest -= more;
  }
  const wide = shown.filter((it) => it.column.getColId() !== MARK_COLUMN);
  for (const it of wide) it.width += Math.floor(rest / wide.length);
}

// Fits a table into its place; the ids of the columns that are shown. It looks at what the table
// has, not at what was set last: a table that is drawn late takes its own widths and columns again.
export function fitTable(api, box, chosen) {
  const { columns, shown, left } = choice(api, roomOf(box), chosen);
  spread(shown, left);
  const ids = new Set(shown.map(({ column }) => column.getColId()));
  const hidden = columns.map(({ column }) => column).filter((it) => !ids.has(it.getColId()));
  const toShow = shown.map(({ column }) => column).filter((it) => !it.isVisible());
  const toHide = hidden.filter((it) => it.isVisible());
  const widths = shown
    .filter((it) => it.column.getActualWidth() !== it.width)
    .map((it) => ({ key: it.column, newWidth: it.width }));
  if (toShow.length) api.setColumnsVisible(toShow, true);
  if (toHide.length) api.setColumnsVisible(toHide, false);
  if (widths.length) api.setColumnWidths(widths);
  if (toShow.length + toHide.length + widths.length) refreshNames(api);
  return columns.map(({ column }) => column.getColId()).filter((id) => ids.has(id));
}

const refreshNames = (api) =>
  api.refreshCells({ force: true, columns: api.getAllDisplayedColumns().filter(isLong) });

// A width that a hand has given stays.
export function keepWidth({ api, column }) {
  knownOf(api).dragged[column.getColId()] = column.getActualWidth();
  refreshNames(api);
}

// By so many pixels the columns are wider than the table.
export function overflow(api, box) {
  const widths = api.getAllDisplayedColumns().map((column) => column.getActualWidth());
  return widths.reduce((sum, width) => sum + width, 0) - roomOf(box);
}

// Begin and end of a longer name: names often differ in what they end with.
export function cutMiddle({ value, column }) {
  const room = column.getActualWidth() - PADDING_PX;
  if (!value || textWidth(value) <= room) return value;
  const letters = Array.from(value);
  let kept = letters.length - 1;
  const cut = () => {
    const tail = Math.floor(kept * 0.4);
    const parts = [letters.slice(0, kept - tail), "…", letters.slice(letters.length - tail)];
    return parts.flat().join("");
  };
  while (kept > 4 && textWidth(cut()) > room) kept -= 1;
  return cut();
}
