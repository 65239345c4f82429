// Boxes whose content comes as markup (dashboard/components/markup.py).

import { navigate } from "./address.js";
import { isLoaded, loadOpened } from "./messages.js";

// What is there already is changed node by node, so that focus, selection and pointer stay where
// they are.
function drawMarkup(box) {
  const wanted = document.createElement("template");
  wanted.innerHTML = box.dataset.markup;
  for (const details of wanted.content.querySelectorAll("details[data-key]")) {
    details.open = opened.has(details.dataset.key);
  }
  takeChildren(box, wanted.content);
  loadOpened(box);
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
      const isKept = isLoaded(place, child);
      takeAttributes(place, child);
      if (!isKept) takeChildren(place, child);
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

document.addEventListener("click", function (event) {
  const link = event.target.closest("[data-markup] a[href^='/']:not([data-reloads])");
  const opensElsewhere = event.button || event.metaKey || event.ctrlKey || event.shiftKey;
  if (!link || opensElsewhere || event.altKey) return;
  event.preventDefault();
  navigate(link.getAttribute("href").replace(/^\/+/, ""));
});
