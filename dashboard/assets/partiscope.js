// Keys, theme and refresh: the little that must happen in the browser.
(function () {
  "use strict";

  const GO_TIMEOUT_MS = 2500;
  const TOAST_MS = 2500;
  const WHY_MS = 7000;
  const FILE_KIB_MAX = 1024;
  // A longer one (a file of entries) is kept with the plan (VALUE_MAX in control/views/ghost.py).
  const ADDRESS_VALUE_MAX = 200;
  let goUntil = 0;
  let toastTimer = 0;

  function navigate(path) {
    window.history.pushState({}, "", "/" + path);
    window.dispatchEvent(new CustomEvent("_dashprivate_pushstate"));
    window.scrollTo(0, 0);
  }

  function click(id) {
    const button = document.getElementById(id);
    if (button) button.click();
  }

  function here() {
    return window.location.pathname.replace(/^\/+/, "").split("/").map(decodeURIComponent);
  }

  function toast(words, shownMs) {
    const place = document.getElementById("note");
    if (!place) return;
    place.textContent = words;
    place.classList.add("shown");
    window.clearTimeout(toastTimer);
    toastTimer = window.setTimeout(() => place.classList.remove("shown"), shownMs || TOAST_MS);
  }

  // From a view path to what it is about, by the names that forms use.
  function scopeOf(path) {
    const [plain, query] = String(path || "").replace(/^\/+/, "").split("?");
    const parts = plain.split("/").map(decodeURIComponent);
    const scope = {};
    if (["topics", "browse", "produce"].includes(parts[0]) && parts[1]) scope.topic = parts[1];
    if (parts[0] === "topics" && parts[2] === "partitions") scope.partition = parts[3];
    if (parts[0] === "brokers" && parts[1]) scope.broker = parts[1];
    if (parts[0] === "groups" && parts[1]) scope.group = parts[1];
    const wanted = new URLSearchParams(query || "");
    if (wanted.get("partition") && scope.topic) scope.partition = wanted.get("partition");
    return scope;
  }

  // What a key acts on: what has the focus, else what is under the pointer, else the selected
  // row, else the view itself.
  function marked() {
    const focused = document.activeElement && document.activeElement.closest("main [data-path]");
    return focused || Array.from(document.querySelectorAll("main [data-path]:hover")).pop() || null;
  }

  let selectedPath = "";

  function scope() {
    const element = marked();
    // Nothing can be done to what is not there.
    const isMissing = document.querySelector("#missing:not([hidden])");
    const own = isMissing ? {} : scopeOf(window.location.pathname + window.location.search);
    if (element) return { ...own, ...scopeOf(element.dataset.path) };
    const selected = document.querySelector(".grid") && !isMissing ? scopeOf(selectedPath) : {};
    return { ...own, ...selected };
  }

  function query(values) {
    const known = Object.entries(values).filter(([, value]) => value);
    return known.length ? "?" + new URLSearchParams(known) : "";
  }

  function openForm(form, given) {
    window.dash_clientside.set_props("operation", { data: { form, given, at: Date.now() } });
  }

  function reassignHere() {
    const element = marked();
    const plans = 'a.finding-step[href^="/plan"]';
    const step = element ? element.querySelector(plans) : document.querySelector("#findings " + plans);
    if (step) return navigate(step.getAttribute("href").replace(/^\//, ""));
    const { topic, partition } = scope();
    return navigate("plan" + query({ topics: topic, partition }));
  }

  // Why forms are greyed, by their names.
  let denied = {};

  function operate(form) {
    if (denied[form]) return toast(denied[form], WHY_MS);
    const here_ = scope();
    if (form === "reassign") return reassignHere();
    if (form === "produce") {
      const place = here_.topic ? "produce/" + encodeURIComponent(here_.topic) : "produce";
      return navigate(place + query({ partition: here_.partition }));
    }
    return openForm(form, { topic: here_.topic, topics: here_.topic, group: here_.group });
  }

  function keymap(name) {
    const place = document.getElementById("keymap");
    return place ? JSON.parse(place.dataset[name]) : {};
  }

  function copyLink() {
    if (!navigator.clipboard) return toast("this browser lets no page copy; the link is above");
    return navigator.clipboard.writeText(window.location.href).then(
      () => toast("link copied"),
      () => toast("the browser refused to copy; the link is in its address line")
    );
  }

  function exportTable(format) {
    const grid = document.querySelector(".grid");
    if (!grid) return toast("no table here to export");
    const kind = grid.id.replace(/^grid-/, "");
    const wanted = new URLSearchParams(window.location.search);
    const here_ = scopeOf(window.location.pathname);
    const limits = { scope: here_.topic || here_.group };
    for (const name of ["q", "sort", "cols", "at", "cluster"]) limits[name] = wanted.get(name);
    const field = document.getElementById("filter-" + kind);
    if (field && field.value) limits.q = field.value;
    const link = document.createElement("a");
    link.href = "/export/" + kind + "." + format + query(limits);
    link.download = kind + "." + format;
    link.click();
    return toast("exported what the filter leaves as " + format.toUpperCase());
  }

  // What stands behind a figure: its explanation, where the pointer or the focus is.
  function why() {
    const focused = document.activeElement && document.activeElement.closest("main [title]");
    const element = focused || Array.from(document.querySelectorAll("main [title]:hover")).pop();
    if (!element) return toast("point at a figure or a column's title, then press i");
    const label = element.querySelector(".tile-label");
    const name = (label || element).textContent.trim();
    return toast(name + ": " + element.title, WHY_MS);
  }

  // A dialog takes a while until it stands, on a busy machine a long one, and first gives the focus
  // to its button.
  const FOCUS_MS_MAX = 5000;
  const FOCUS_AGAIN_MS = 60;
  const FOCUS_HELD_TIMES = 3;
  function focusSoon(id, until, held) {
    const field = document.getElementById(id);
    const isHeld = field && document.activeElement === field;
    const times = isHeld ? (held || 0) + 1 : 0;
    if (field && !isHeld) field.focus();
    if (times >= FOCUS_HELD_TIMES || Date.now() > until) return;
    window.setTimeout(() => focusSoon(id, until, times), FOCUS_AGAIN_MS);
  }

  // What a key asks about a move is answered by the next one: Enter, or Escape. Its question may
  // take seconds to come; until then nothing is focused, least of all another question's answer.
  const ASKED_MS_MAX = 20000;
  function ask(button) {
    click(button);
    const asked = `[data-asks="${button}"][data-move="${CSS.escape(here()[1] || "")}"]`;
    focusAsked(`#move-question ${asked}`, Date.now() + ASKED_MS_MAX);
  }
  function focusAsked(selector, until) {
    const question = document.querySelector(selector);
    if (question) {
      // Who types elsewhere by now does not mean this question.
      if (document.activeElement instanceof HTMLInputElement) return;
      const word = question.querySelector("#move-typed");
      focusSoon(word ? "move-typed" : "move-confirm", Date.now() + FOCUS_MS_MAX);
    } else if (Date.now() < until) {
      window.setTimeout(() => focusAsked(selector, until), FOCUS_AGAIN_MS);
    }
  }

  function focusHeader() {
    const header = document.querySelector(".grid .ag-header-cell");
    if (header) header.focus();
  }

  function chooseColumns() {
    const choice = document.querySelector("main .column-choice");
    if (!choice) return toast("no table here");
    choice.open = !choice.open;
    const first = choice.querySelector("input");
    if (choice.open && first) first.focus();
    return undefined;
  }

  const ACTIONS = {
    "/": () => {
      const field = document.querySelector("main .filter-input input, main input.filter-input");
      if (field) field.focus();
    },
    " ": () => click("pause-button"),
    "?": () => click("help-button"),
    ":": () => click("palette-button"),
    "@": () => click("time-button"),
    i: why,
    s: focusHeader,
    l: chooseColumns,
    t: () => click("scheme-switch"),
    e: () => exportTable("csv"),
    J: () => exportTable("json"),
    v: () => {
      const { topic, partition } = scope();
      if (topic) navigate("browse/" + encodeURIComponent(topic) + query({ partition }));
      else toast("v browses a topic: choose one first");
    },
    w: () => navigate("what-if" + query({ broker: scope().broker })),
    x: () => ask("move-cancel"),
    X: () => ask("move-cancel_after_wave"),
    F: () => click("browse-follow"),
    u: () => ask("move-rollback"),
    y: copyLink,
  };

  // Escape closes what is open (dialogs hear of it by themselves), and never leaves the view.
  function closeOpen(target) {
    const menu = document.querySelector(".column-choice[open], .clusters[open]");
    if (menu) {
      menu.open = false;
      menu.querySelector("summary").focus();
    } else if (isTypedInto(target)) target.blur();
    else click("move-leave");
  }

  function isTypedInto(target) {
    return target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName);
  }

  function isDialogOpen() {
    return document.querySelector('[role="dialog"]') !== null;
  }

  function submitsByEnter(target) {
    return target.tagName === "INPUT" && target.getAttribute("aria-haspopup") !== "listbox";
  }

  function typedKey(event) {
    const target = event.target;
    if (target.id === "palette-query") return paletteKey(event);
    if (event.key === "Enter" && submitsByEnter(target)) {
      const form = target.closest(".operation-form");
      const button = form && form.querySelector("button.submit");
      if (button) button.click();
    }
    return undefined;
  }

  function go(key) {
    const path = keymap("places")[key];
    goUntil = 0;
    if (path) navigate(path);
    return Boolean(path);
  }

  function pressed(event) {
    if ((event.ctrlKey || event.metaKey) && event.key === "p") {
      event.preventDefault();
      return click("palette-button");
    }
    if (event.ctrlKey || event.metaKey || event.altKey) return undefined;
    if (event.key === "Escape") return wasDialogOpen ? undefined : closeOpen(event.target);
    if (isTypedInto(event.target)) return typedKey(event);
    if (wasDialogOpen || isDialogOpen()) return undefined;
    if (goUntil > Date.now() && go(event.key)) return event.preventDefault();
    if (event.key === "g") {
      goUntil = Date.now() + GO_TIMEOUT_MS;
      return undefined;
    }
    const isControl = /^(BUTTON|A|SUMMARY)$/.test(event.target.tagName);
    if (event.key === " " && isControl) return undefined;
    const form = keymap("forms")[event.key];
    const action = form ? () => operate(form) : ACTIONS[event.key];
    if (action) {
      event.preventDefault();
      action();
    }
    return undefined;
  }

  // Told before the dialog itself hears of the key: the Escape that closes it must not also lead
  // one level up.
  let wasDialogOpen = false;
  window.addEventListener("keydown", () => { wasDialogOpen = isDialogOpen(); }, true);
  document.addEventListener("keydown", pressed);

  document.addEventListener("click", function (event) {
    for (const choice of document.querySelectorAll(".column-choice[open]")) {
      if (!choice.contains(event.target)) choice.open = false;
    }
    const target = event.target.closest(
      "[data-form], [data-export], [data-go], [data-at], [data-now], [data-clicks], .closes, " +
      "#copy-button");
    if (!target) return;
    if (target.id === "copy-button") copyLink();
    else if (target.dataset.clicks) click(target.dataset.clicks);
    else if (target.dataset.now) {
      closeDialogs();
      click("past-now");
    }
    else if (target.dataset.at) {
      window.dash_clientside.set_props("time-at", { value: target.dataset.at });
      window.setTimeout(() => click("time-apply"), 30);
    } else if (target.dataset.export) exportTable(target.dataset.export);
    else if (target.classList.contains("palette-entry")) chosen(target);
    else if (target.classList.contains("closes")) closeDialogs();
    else if (target.dataset.form) {
      openForm(target.dataset.form, Object.fromEntries(new URLSearchParams(target.dataset.given)));
    }
  });

  // Links that lead to a plan say what lacks for it, before anything follows them.
  window.addEventListener("click", function (event) {
    const plans = event.target.closest && event.target.closest('main a[href^="/plan"]');
    if (!plans || !denied.reassign) return;
    event.preventDefault();
    event.stopPropagation();
    toast(denied.reassign, WHY_MS);
  }, true);

  function closeDialogs() {
    for (const id of ["operation-dialog", "palette", "help", "time-dialog"]) {
      window.dash_clientside.set_props(id, { opened: false });
    }
  }

  function chosen(entry) {
    closeDialogs();
    if (entry.dataset.go) navigate(entry.dataset.go);
    else if (entry.dataset.form) window.setTimeout(() => operate(entry.dataset.form), 50);
    else window.setTimeout(() => click(entry.dataset.button), 50);
  }

  // In the palette the field keeps the focus; arrows move a mark, Enter takes the marked entry.
  function paletteKey(event) {
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

  function systemScheme() {
    return window.matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  }

  function paint(scheme) {
    document.documentElement.dataset.scheme = scheme;
    document.documentElement.dataset.agThemeMode = scheme;
    // Charts that come with the page are drawn in these colours.
    document.cookie = `scheme=${scheme}; path=/; SameSite=Lax`;
  }

  paint(document.documentElement.dataset.scheme || systemScheme());

  function withGrids(action) {
    if (!window.dash_ag_grid.getApiAsync) return;
    for (const grid of document.querySelectorAll(".grid[id]")) {
      window.dash_ag_grid.getApiAsync(grid.id).then((api) => {
        if (api && !api.isDestroyed()) action(api);
      });
    }
  }

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

  // Boxes whose content comes as markup (dashboard/components/markup.py). What is there already is
  // changed node by node, so that focus, selection and pointer stay where they are.
  function drawMarkup(box) {
    const wanted = document.createElement("template");
    wanted.innerHTML = box.dataset.markup;
    for (const details of wanted.content.querySelectorAll("details[data-key]")) {
      details.open = opened.has(details.dataset.key);
    }
    takeChildren(box, wanted.content);
  }

  // What was opened, by its key: it stays open when it comes anew, wherever it stands then.
  const opened = new Set();
  document.addEventListener("toggle", ({ target }) => {
    if (!target.dataset.key || !target.isConnected) return;
    if (target.open) opened.add(target.dataset.key);
    else opened.delete(target.dataset.key);
  }, true);

  function takeChildren(box, wanted) {
    let place = box.firstChild;
    for (const child of Array.from(wanted.childNodes)) {
      const next = place && place.nextSibling;
      if (!place) box.appendChild(child);
      else if (place.nodeName !== child.nodeName) box.replaceChild(child, place);
      else if (child.nodeType === Node.TEXT_NODE) takeText(place, child);
      else {
        takeAttributes(place, child);
        takeChildren(place, child);
      }
      place = next;
    }
    while (place) {
      const next = place.nextSibling;
      place.remove();
      place = next;
    }
  }

  function takeText(node, wanted) {
    if (node.data !== wanted.data) node.data = wanted.data;
  }

  function takeAttributes(node, wanted) {
    for (const { name } of Array.from(node.attributes)) {
      // What was opened stays open; what has a key, by that.
      const isOpen = name === "open" && !node.dataset.key;
      if (!wanted.hasAttribute(name) && !isOpen) node.removeAttribute(name);
    }
    for (const { name, value } of wanted.attributes) {
      if (node.getAttribute(name) !== value) node.setAttribute(name, value);
    }
  }

  // An upload's input has no words of its own: those who hear the page are told its button's.
  function nameByButton(input) {
    input.setAttribute("aria-label", input.parentElement.textContent);
  }

  // Dash makes anew what a callback answers. What was drawn there moves over and is then changed,
  // node by node, and whoever had the focus there has it again.
  let focused = null;
  document.addEventListener("focusin", (event) => { focused = event.target; });
  document.addEventListener("focusout", () => window.setTimeout(() => {
    if (document.activeElement === document.body) focused = null;
  }));

  function boxesIn(nodes) {
    const elements = Array.from(nodes).filter((node) => node.nodeType === Node.ELEMENT_NODE);
    return elements.flatMap((node) => [
      ...(node.matches("[data-markup]") ? [node] : []), ...node.querySelectorAll("[data-markup]"),
    ]);
  }

  // Within the block that was answered: another view begins anew.
  function moveOver(changes) {
    const isView = (target) => target.tagName === "MAIN" || target.id === "existing";
    const blocks = changes.filter(({ target }) => target.id && !isView(target));
    const left = new Map();
    for (const { target, removedNodes } of blocks) {
      left.set(target, [...(left.get(target) || []), ...boxesIn(removedNodes)]);
    }
    for (const { target, addedNodes } of blocks) {
      for (const box of boxesIn(addedNodes)) {
        const before = left.get(target).shift();
        if (before && !box.hasChildNodes()) box.append(...before.childNodes);
      }
    }
  }

  new MutationObserver((changes) => {
    const had = focused && !focused.isConnected ? focused : null;
    moveOver(changes);
    if (had && had.isConnected) had.focus({ preventScroll: true });
    for (const change of changes) {
      if (change.type === "attributes") drawMarkup(change.target);
      for (const node of change.addedNodes) {
        if (node.nodeType !== Node.ELEMENT_NODE) continue;
        if (node.hasAttribute("data-markup")) drawMarkup(node);
        for (const found of node.querySelectorAll("[data-markup], input[type='file']")) {
          if (found.type === "file") nameByButton(found);
          else drawMarkup(found);
        }
      }
    }
  }).observe(document.documentElement, {
    childList: true, subtree: true, attributes: true, attributeFilter: ["data-markup"],
  });

  // Pictures of cells (dashboard/components/heat_box.py): which cell is at a place.
  function cellAt(plot, event) {
    const box = plot.getBoundingClientRect();
    const topics = plot.dataset.topics.split("\t");
    const brokers = plot.dataset.brokers.split("\t");
    const along = (share, count) => Math.max(0, Math.min(count - 1, Math.floor(share * count)));
    const column = along((event.clientX - box.left) / box.width, topics.length);
    const row = along((event.clientY - box.top) / box.height, brokers.length);
    const words = plot.dataset.words.split("\t")[row * topics.length + column];
    return { topic: topics[column], broker: brokers[row], words };
  }

  // What is under the pointer, told beside it at once.
  function tell(words, event) {
    let tip = document.getElementById("tip");
    if (!tip) {
      tip = document.createElement("div");
      tip.id = "tip";
      tip.setAttribute("aria-hidden", "true");
      document.body.appendChild(tip);
    }
    tip.hidden = !words;
    if (!words) return;
    tip.textContent = words;
    const left = Math.min(event.clientX + 14, window.innerWidth - tip.offsetWidth - 8);
    tip.style.translate = `${Math.max(left, 8)}px ${event.clientY + 16}px`;
  }

  document.addEventListener("pointermove", (event) => {
    const told = event.target.closest && event.target.closest("[data-words], [data-tip]");
    if (!told) {
      if (document.getElementById("tip")) tell("", event);
      return;
    }
    if (told.dataset.tip) return tell(told.dataset.tip, event);
    const cell = cellAt(told, event);
    return tell(`${cell.topic} on ${cell.broker}: ${cell.words || "nothing"}`, event);
  });

  document.addEventListener("click", (event) => {
    const plot = event.target.closest("[data-words]");
    const tip = document.getElementById("tip");
    if (tip) tip.hidden = true;
    const topic = plot ? cellAt(plot, event).topic : "(";
    if (!topic.startsWith("(")) navigate("topics/" + encodeURIComponent(topic));
  });

  document.addEventListener("click", function (event) {
    const link = event.target.closest("[data-markup] a[href^='/']:not([data-reloads])");
    const opensElsewhere = event.button || event.metaKey || event.ctrlKey || event.shiftKey;
    if (!link || opensElsewhere || event.altKey) return;
    event.preventDefault();
    navigate(link.getAttribute("href").replace(/^\/+/, ""));
  });

  // Columns by the operator's choice, which the address line keeps; null while there is none.
  function chosenColumns() {
    const words = new URLSearchParams(window.location.search).get("cols");
    return words ? words.split(",") : null;
  }

  // Which columns this browser hides in tables of a kind; views leave out columns of their own.
  function hiddenColumns(id) {
    return JSON.parse(window.localStorage.getItem(id) || "[]");
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
    if (hidden.length) window.localStorage.setItem(id, JSON.stringify(hidden));
    else window.localStorage.removeItem(id);
  }

  function columnWords(wanted, options) {
    const shown = wanted ? wanted.length : options.length;
    return shown === options.length ? "columns" : `columns ${shown} of ${options.length}`;
  }

  function showColumns(api) {
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
    if (ids.includes("partition") && ids.indexOf("lag") > place) api.moveColumns(["lag"], place);
  }

  // The address line names what is shown, so that its link shows the same.
  function keepInUrl(values) {
    const url = new URL(window.location.href);
    for (const [name, value] of Object.entries(values)) {
      if (value) url.searchParams.set(name, value);
      else url.searchParams.delete(name);
    }
    if (url.href !== window.location.href) {
      window.history.replaceState({}, "", url.pathname + url.search);
    }
  }

  // A field of a form as the server takes it.
  function fieldText(value) {
    return value === null || value === undefined || value === "no" ? "" : String(value).trim();
  }

  let shownPast = "";

  function isSame(one, other) {
    const names = Object.keys({ ...one, ...other });
    return names.every((name) => (one[name] || "") === (other[name] || ""));
  }

  // "2h" (ago) becomes the moment that it is now, so that it does not move on.
  function moment(words) {
    const ago = /^-?(\d+) ?([smhd])$/.exec(words);
    if (!ago) return words;
    const ms = Number(ago[1]) * { s: 1e3, m: 6e4, h: 36e5, d: 864e5 }[ago[2]];
    return new Date(Date.now() - ms).toISOString().replace(/\.\d+Z$/, "Z");
  }

  // A table follows its filter while that is typed; Dash would answer some 50 ms later.
  const FILTER_PAUSE_MS = 30;
  let filterTimer = 0;
  document.addEventListener("input", ({ target }) => {
    if (!target.closest(".filter-input")) return;
    window.clearTimeout(filterTimer);
    filterTimer = window.setTimeout(() => {
      keepInUrl({ q: target.value });
      withGrids(window.partiscopeRows.askAnew);
    }, FILTER_PAUSE_MS);
  });

  window.dash_clientside = window.dash_clientside || {};
  const none = () => window.dash_clientside.no_update;

  window.dash_clientside.partiscope = {
    // A page that looks at the past is told so once, and then stands still; one that came with
    // what is pushed first shows it already.
    tick: (pushed, isPaused, time, shown) => {
      const past = (time && time.at) || "";
      const isNew = past !== shownPast;
      shownPast = past;
      if (past) return isNew ? { past } : none();
      return (isPaused && !isNew) || !pushed || isSame(pushed, shown || {}) ? none() : pushed;
    },
    togglePause: (clicks) => {
      const isPaused = clicks % 2 === 1;
      document.documentElement.dataset.paused = isPaused ? "yes" : "no";
      return [isPaused, isPaused ? "▶" : "❚❚"];
    },
    switchScheme: (clicks, scheme) => ((scheme || systemScheme()) === "dark" ? "light" : "dark"),
    applyScheme: (scheme, before) => {
      const wanted = scheme || systemScheme();
      paint(wanted);
      return [wanted, wanted === before ? none() : wanted];
    },
    // What would be confirmed is what was previewed: once a field says otherwise it is withdrawn.
    withdrawPreview: (values, previewed, fields) => {
      const was = (previewed || { values: {} }).values;
      const isSame = fields.every((field, n) => fieldText(values[n]) === fieldText(was[field.name]));
      return [!isSame, isSame];
    },
    beat: (told) => window.partiscopeConnection.heard(told),
    toggleHelp: (clicks, isOpen) => !isOpen,
    refreshGrids: () => withGrids((api) => refreshGrid(api)),
    noteDenied: (now) => {
      denied = now || {};
      document.documentElement.dataset.moves = denied.reassign ? "denied" : "allowed";
    },
    // Called only where a view has openers.
    greyOpeners: (now, openers) => {
      const whys = openers.map((it) => (now || {})[it.form] || "");
      return [whys.map(Boolean), whys];
    },
    markNav: (pathname) => {
      window.partiscopeFollow.leave(pathname);
      const view = (pathname || "/").split("/")[1] || "overview";
      for (const link of document.querySelectorAll(".nav-link")) {
        const isHere = link.id === "nav-" + view;
        link.setAttribute("aria-current", isHere ? "page" : "false");
        // On a phone not all of them are in sight.
        if (isHere) link.parentElement.scrollLeft = link.offsetLeft - link.parentElement.clientWidth / 2;
      }
      document.title = view + " · partiscope";
      return view;
    },
    togglePalette: () => {
      focusSoon("palette-query", Date.now() + FOCUS_MS_MAX);
      return [true, ""];
    },
    readTime: (pathname, search, apply, now, back, at, range, before) => {
      const cause = window.dash_clientside.callback_context.triggered_id;
      const wanted = new URLSearchParams(search || "");
      let time = before || {};
      if (cause === "time-apply") time = { at: moment((at || "").trim()), range };
      else if (cause === "time-now" || cause === "past-now") time = {};
      else if (wanted.get("at") || wanted.get("range")) {
        time = { at: wanted.get("at") || "", range: wanted.get("range") || "" };
      }
      document.documentElement.dataset.past = time.at ? "yes" : "no";
      keepInUrl({ at: time.at, range: time.range === "10m" ? "" : time.range });
      return isSame(time, before || {}) ? none() : time;
    },
    closeTime: () => window.dash_clientside.callback_context.triggered_id === "time-button",
    lossChosen: (loss) => {
      if (!loss || !window.location.pathname.startsWith("/what-if")) return none();
      const [kind, value] = loss.split("=");
      keepInUrl({ broker: "", rack: "", [kind]: value });
      return none();
    },
    openPath: (path) => {
      if (path) navigate(path);
    },
    goOnward: (way) => {
      if (way && window.location.pathname === way.from) navigate(way.to);
    },
    measureChosen: (measure) => {
      if (measure && window.location.pathname.startsWith("/map")) keepInUrl({ measure });
    },
    // The address names the plan that is shown and how its form is filled in: so Back, Forward and
    // a reload show it again.
    keepPlan: (choices, choice) => {
      if (!window.location.pathname.startsWith("/plan")) return;
      const shown = (choices || [])[Number(choice || 0)];
      const isFirst = window.dash_clientside.callback_context.triggered.length === 0;
      if (shown || !isFirst) keepInUrl({ made: shown && shown.name });
    },
    keepFields: (values, found, defaults) => {
      if (!window.location.pathname.startsWith("/plan")) return;
      const told = {};
      found.forEach(({ name }, place) => {
        const text = fieldText(values[place]);
        told[name] = text === fieldText(defaults[name]) || text.length > ADDRESS_VALUE_MAX ? "" : text;
      });
      keepInUrl(told);
    },
    markStep: (result, review) => {
      const step = review && review.length ? 2 : result ? 1 : 0;
      document.querySelectorAll("#plan-step li").forEach((item, place) => {
        item.setAttribute("aria-current", place === step ? "step" : "false");
      });
    },
    // The address line names the columns that are shown; where a path names none, those that this
    // browser chose last for such a table, else all. Nothing has triggered a table's first call.
    columnsChosen: (wanted, options, id) => {
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
    },
    // A file's lines go to the server with the click on "send"; more is for the command line.
    fileChosen: (contents, none, name) => {
      const cause = window.dash_clientside.callback_context.triggered_id;
      if (cause !== "produce-file" || !contents) return [null, "no file: key and value are sent", true];
      const kib = Math.ceil((contents.length * 3) / 4 / 1024);
      if (kib > FILE_KIB_MAX) {
        return [null, `✖ ${name} has ${kib.toLocaleString("en")} KiB, a page sends at most ` +
          `${FILE_KIB_MAX.toLocaleString("en")}: partiscope produce --file takes it`, true];
      }
      const words = `${name}, ${kib} KiB: its lines are sent, not key, value and count`;
      return [{ name, contents }, words, false];
    },
    toggleFollow: (follow, read, isOn) =>
      window.dash_clientside.callback_context.triggered_id === "browse-follow" && !isOn,
    // Answers the words of the button: of a callback without an answer Dash makes no first call in
    // a view that came by a link.
    follow: (isOn, partition, wanted, topic) => {
      window.partiscopeFollow.follow(isOn && topic, { partition, q: wanted });
      keepInUrl(isOn ? { follow: "yes", partition, q: wanted } : { follow: "" });
      return isOn ? "Stop following" : "Follow";
    },
  };

  window.dashAgGridFunctions = window.dashAgGridFunctions || {};
  const functions = window.dashAgGridFunctions;
  // A narrow screen keeps name, status and one figure (columns of rank 1), unless columns were
  // chosen.
  // What a grid tells late may come when its view is gone already.
  const whileThere = (act) => (params) => (params.api.isDestroyed() ? undefined : act(params));
  functions.fitColumns = whileThere((params) => showColumns(params.api));
  // A short table ends with its last row; a long one fills the window and scrolls.
  const ROW_PX = 34;
  const HEAD_PX = 40;
  const ROWS_MIN = 3;
  functions.fitHeight = whileThere((params) => {
    const box = document.querySelector(".grid[id]");
    // While a filter or a sort is answered the table stays as tall as it is.
    if (!box || !params.api.isLastRowIndexKnown()) return;
    const rows = Math.max(params.api.getDisplayedRowCount(), ROWS_MIN);
    const wanted = HEAD_PX + rows * ROW_PX + 14;
    box.style.maxHeight = wanted + "px";
    box.style.minHeight = Math.min(wanted, 320) + "px";
  });
  // Names are shown whole where there is room; of long ones the beginning.
  const NAME_PX_MAX = 340;
  const NAME_PX_NARROW = 112;
  functions.fitNames = whileThere((params) => {
    const [name] = params.api.getAllDisplayedColumns().filter((it) => it.getPinned() === "left");
    if (!name || (window.innerWidth >= 620 && window.innerWidth < 1000)) return;
    const isWide = window.innerWidth >= 1000;
    const most = isWide ? NAME_PX_MAX : NAME_PX_NARROW;
    if (isWide) params.api.autoSizeColumns([name]);
    if (name.getActualWidth() <= most) return;
    params.api.setColumnWidths([{ key: name, newWidth: most }]);
  });
  functions.keepSort = whileThere((params) => {
    const sorted = params.api.getColumnState().find((column) => column.sort);
    keepInUrl({ sort: sorted ? (sorted.sort === "desc" ? "-" : "") + sorted.colId : "" });
  });
  functions.rememberRow = whileThere((params) => {
    const rows = params.api.getSelectedRows();
    selectedPath = rows.length ? rows[0].path : "";
  });
  // The colour of a cell's tone; empty takes away that of the row which stood there before.
  functions.toneStyle = (params) => {
    const tone = params.data && params.data[params.colDef.field + "__tone"];
    return { color: tone ? `var(--${tone})` : "" };
  };
  functions.openRow = (params) => params.data && navigate(params.data.path);
  functions.openRowOnEnter = (params) => {
    if (params.event && params.event.key === "Enter" && params.data) navigate(params.data.path);
  };
  functions.openRowOfFirstColumn = (params) => {
    if (params.data && params.column && params.column.getPinned() === "left") {
      navigate(params.data.path);
    }
  };
})();
