// Keys, and the buttons that stand for them.

import { click, navigate, query } from "./address.js";
import { chosen, closeDialogs, isDialogOpen, paletteKey } from "./dialogs.js";
import { exportTable } from "./export.js";
import { ask } from "./focus.js";
import { markAll, markSelected } from "./marks.js";
import { copyValue } from "./messages.js";
import { openHere, operate } from "./operations.js";
import { scope } from "./scope.js";
import { copyLink, toast, WHY_MS } from "./toast.js";
import { endTour, isTouring, stepTour } from "./tour.js";

const GO_TIMEOUT_MS = 2500;
let goUntil = 0;

function keymap(name) {
  const place = document.getElementById("keymap");
  return place ? JSON.parse(place.dataset[name]) : {};
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
    const field = document.querySelector(
      "main .filter-input input, main input.filter-input, main .filter-field input");
    if (!field) return toast("no filter here");
    return field.focus();
  },
  " ": () => click("pause-button"),
  "?": () => click("help-button"),
  ":": () => click("palette-button"),
  "@": () => click("time-button"),
  i: why,
  s: focusHeader,
  l: chooseColumns,
  t: () => click("scheme-switch"),
  H: () => {
    const box = document.querySelector(".internal-switch input");
    if (box) box.click();
  },
  m: markSelected,
  "*": markAll,
  e: () => exportTable("csv"),
  J: () => exportTable("json"),
  v: () => {
    const { topic, partition } = scope();
    if (topic) navigate("browse/" + encodeURIComponent(topic) + query({ partition }));
    else toast("v browses a topic: choose one first");
  },
  V: () => {
    const { topic, broker } = scope();
    const name = encodeURIComponent(topic || broker);
    if (topic) navigate("topics/" + name + "/configs");
    else if (broker) navigate("brokers/" + name + "/configs");
    else toast("V shows the configs of a topic or broker: choose one first");
  },
  w: () => navigate("what-if" + query({ broker: scope().broker })),
  x: () => ask("move-cancel"),
  X: () => ask("move-cancel_after_wave"),
  F: () => click("browse-follow"),
  u: () => ask("move-rollback"),
  y: copyLink,
  ">": () => isTouring() && stepTour(1),
  "<": () => isTouring() && stepTour(-1),
};

// Escape closes what is open (dialogs hear of it by themselves), and never leaves the view.
function closeOpen(target) {
  const menu = document.querySelector(".column-choice[open], .clusters[open]");
  if (menu) {
    menu.open = false;
    menu.querySelector("summary").focus();
  } else if (isTypedInto(target)) target.blur();
  else if (isTouring()) endTour();
  else click("move-leave");
}

function isTypedInto(target) {
  if (target.type === "checkbox") return false;
  return target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName);
}

function submitsByEnter(target) {
  return target.tagName === "INPUT" && target.getAttribute("aria-haspopup") !== "listbox";
}

function typedKey(event) {
  const target = event.target;
  if (target.id === "palette-query") return paletteKey(event);
  if (event.key === "Enter" && !event.repeat && submitsByEnter(target)) {
    if (target.id === "operation-typed") return click("operation-confirm");
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
  const isControl = /^(BUTTON|A|SUMMARY|INPUT)$/.test(event.target.tagName);
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
    "[data-copies], #copy-button");
  if (!target) return;
  if (target.id === "copy-button") copyLink();
  else if (target.dataset.copies) copyValue(target.dataset.copies);
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
    openHere(target.dataset.form, Object.fromEntries(new URLSearchParams(target.dataset.given)));
  }
});
