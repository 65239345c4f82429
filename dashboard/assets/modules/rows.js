// Rows of the large tables come block by block by plain requests. Dash gives every grid a source of
// its own, which asks by a callback; at its first question the grid is given ours, and Dash has
// nothing to do with a jump, a sort or a refresh any more, which took the page's one thread longer
// than the rows.

import { internalRows } from "./address.js";

function addressOf(kind, scope, request) {
  const cluster = document.documentElement.dataset.cluster;
  const field = document.getElementById("filter-" + kind);
  const [sorted] = request.sortModel;
  const wanted = {
    from: request.startRow,
    to: request.endRow,
    q: field && field.value,
    sort: sorted && (sorted.sort === "desc" ? "-" : "") + sorted.colId,
    scope,
    internal: ["topics", "groups"].includes(kind) && internalRows(),
    at: new URLSearchParams(window.location.search).get("at"),
  };
  const query = new URLSearchParams(Object.entries(wanted).filter(([, value]) => value));
  return `${cluster ? "/@" + encodeURIComponent(cluster) : ""}/rows/${kind}?${query}`;
}

async function fetched(address) {
  const response = await window.fetch(address);
  if (!response.ok) throw new Error((await response.text()).trim());
  return response.json();
}

// Names of all rows that the filter of a list leaves, and how many those are.
export async function keysShown(kind, limit) {
  const request = { startRow: 0, endRow: limit, sortModel: [] };
  const { rows, count } = await fetched(addressOf(kind, null, request));
  return { keys: rows.map((row) => row.key), count };
}

function tell(kind, words, isProblem) {
  const place = document.getElementById("count-" + kind);
  const className = isProblem ? "count problem" : "count";
  if (!place || (place.textContent === words && place.className === className)) return;
  window.dash_clientside.set_props(place.id, { children: words, className });
}

let afterRows = () => {};
export const whenRowsCome = (act) => {
  afterRows = act;
};

function sourceOf(kind, scope) {
  const getRows = async (request) => {
    try {
      const page = await fetched(addressOf(kind, scope, request));
      request.successCallback(page.rows, page.count);
      afterRows();
      tell(kind, page.words, page.is_problem);
    } catch (error) {
      request.failCallback();
      const words = `✖ no rows: ${error.message}; they are asked for again with the next figures`;
      tell(kind, words, true);
    }
  };
  return { getRows };
}

const LOOK_AGAIN_MS = 50;
const CALM_TIMES = 20;
const LOOKS_MAX = 2400;
const newest = {};

function gridOf(id) {
  try {
    const api = window.dash_ag_grid.getApi(id);
    return api.isDestroyed() ? null : api;
  } catch (error) {
    return null; // it is only just being made
  }
}

// The grid of a view just left may still stand under the same name: until ours has stayed.
function give(id, source, looks, calm) {
  if (looks > LOOKS_MAX || calm > CALM_TIMES || newest[id] !== source) return;
  const grid = gridOf(id);
  const isOurs = grid && grid.getGridOption("datasource") === source;
  if (grid && !isOurs) grid.setGridOption("datasource", source);
  window.setTimeout(() => give(id, source, looks + 1, isOurs ? calm + 1 : 0), LOOK_AGAIN_MS);
}

// The grid asks its new source. Dash's question is given up: one that nobody answers takes the
// place of a block for as long as the grid lives, and with all places taken no row comes.
export function rowsWanted(request, scope, id) {
  if (request) {
    give(id, newest[id] = sourceOf(id.replace(/^grid-/, ""), scope), 0, 0);
    request.failCallback();
  }
  return window.dash_clientside.no_update;
}

// Until a grid has the source that is meant for it, it needs no word of a new filter: that one
// will ask with it.
export function askAnew(api) {
  if (Object.values(newest).includes(api.getGridOption("datasource"))) api.purgeInfiniteCache();
}

export function withGrids(action) {
  if (!window.dash_ag_grid.getApiAsync) return;
  for (const grid of document.querySelectorAll(".grid[id]")) {
    window.dash_ag_grid.getApiAsync(grid.id).then((api) => {
      if (api && !api.isDestroyed()) action(api);
    });
  }
}
