// Rows of the large tables: the grid asks block by block, rows come by plain requests. Dash only
// hands the request over, which has the grid's own functions in it; what it would do for an answer
// takes the page's one thread longer than the rows.
(function () {
  "use strict";

  const FRESH_MS = 1000;
  // Answers on their way to blocks that the grid has not asked for yet, by their addresses.
  const ahead = new Map();

  function addressOf(kind, asked, from, to) {
    const cluster = document.documentElement.dataset.cluster;
    const wanted = new URLSearchParams({ from, to });
    for (const [name, value] of Object.entries(asked)) if (value) wanted.set(name, value);
    return `${cluster ? "/@" + encodeURIComponent(cluster) : ""}/rows/${kind}?${wanted}`;
  }

  async function fetched(address) {
    const response = await window.fetch(address);
    if (!response.ok) throw new Error((await response.text()).trim());
    return response.json();
  }

  function answer(address) {
    const known = ahead.get(address);
    ahead.delete(address);
    return known && Date.now() - known.began < FRESH_MS ? known.page : fetched(address);
  }

  // Blocks of a grid; none while it is only just being made.
  function blocksOf(id) {
    try {
      return Object.values(window.dash_ag_grid.getApi(id).getCacheBlockState() || {});
    } catch (error) {
      return [];
    }
  }

  // The grid asks for one block at a time; a window over the border of two waits for both.
  function fetchAhead(id, addressOfBlock) {
    for (const [address, { began }] of ahead) {
      if (Date.now() - began > FRESH_MS) ahead.delete(address);
    }
    for (const block of blocksOf(id)) {
      const address = addressOfBlock(block.startRow, block.endRow);
      if (block.pageStatus !== "needsLoading" || ahead.has(address)) continue;
      const page = fetched(address);
      page.catch(() => {});
      ahead.set(address, { page, began: Date.now() });
    }
  }

  function tell(kind, words, isProblem) {
    const place = document.getElementById("count-" + kind);
    const className = isProblem ? "count problem" : "count";
    if (!place || (place.textContent === words && place.className === className)) return;
    window.dash_clientside.set_props(place.id, { children: words, className });
  }

  async function giveRows(request, id, asked) {
    const kind = id.replace(/^grid-/, "");
    const [sorted] = request.sortModel;
    const sort = sorted ? (sorted.sort === "desc" ? "-" : "") + sorted.colId : "";
    const addressOfBlock = (from, to) => addressOf(kind, { ...asked, sort }, from, to);
    try {
      const coming = answer(addressOfBlock(request.startRow, request.endRow));
      fetchAhead(id, addressOfBlock);
      const page = await coming;
      tell(kind, page.words, page.is_problem);
      request.successCallback(page.rows, page.count);
    } catch (error) {
      tell(kind, `✖ no rows: ${error.message}; they are asked for again with the next figures`, true);
      request.failCallback();
    }
  }

  window.dash_clientside.partiscope.rowsWanted = (request, text, scope, time, id) => {
    if (request) giveRows(request, id, { q: text, scope, at: time && time.at });
    return window.dash_clientside.no_update;
  };
})();
