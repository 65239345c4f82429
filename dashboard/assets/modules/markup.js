// Boxes whose content comes as markup (dashboard/components/markup.py).

import { navigate } from "./address.js";
import { isLoaded, loadOpened } from "./messages.js";
import { greyOpenersIn } from "./operations.js";

// A press and its release have to meet the same node, with the same words on it: what comes in
// between is drawn after the click. A press whose release is never told (on a scrollbar) ends by
// itself.
const PRESS_MAX_MS = 5000;
let pressedAt = -PRESS_MAX_MS;
const undrawn = new Set();

function release() {
  // The click follows in the same task.
  window.setTimeout(() => {
    pressedAt = -PRESS_MAX_MS;
    for (const box of undrawn) if (box.isConnected) drawMarkup(box);
    undrawn.clear();
  });
}
window.addEventListener("pointerdown", ({ timeStamp }) => { pressedAt = timeStamp; }, true);
for (const ending of ["pointerup", "pointercancel", "dragend"]) {
  window.addEventListener(ending, release, true);
}
window.addEventListener("blur", release); // The window's own: a press takes the focus elsewhere.

function drawSoon(box) {
  const isPressed = window.performance.now() - pressedAt < PRESS_MAX_MS;
  if (isPressed && box.hasChildNodes()) undrawn.add(box);
  else drawMarkup(box);
}

// What is there already is changed node by node, so that focus, selection and pointer stay where
// they are.
function drawMarkup(box) {
  const active = document.activeElement;
  const wanted = document.createElement("template");
  wanted.innerHTML = box.dataset.markup;
  for (const details of wanted.content.querySelectorAll("details[data-key]")) {
    details.open = opened.has(details.dataset.key);
  }
  const selected = selectedIn(box);
  takeChildren(box, wanted.content);
  if (selected) selectAgain(selected);
  // What moved to another row has lost the focus on the way.
  const isLost = active !== document.activeElement && box.contains(active);
  if (isLost) active.focus({ preventScroll: true });
  greyOpenersIn(box);
  loadOpened(box);
}

// What was opened, by its key: it stays open when it comes anew, wherever it stands then.
const opened = new Set();
document.addEventListener("toggle", ({ target }) => {
  if (!target.dataset.key || !target.isConnected) return;
  if (target.open) opened.add(target.dataset.key);
  else opened.delete(target.dataset.key);
}, true);

const keyOf = (node) => (node.dataset && node.dataset.key) || null;

// Nodes with a key (rows, findings) go where their key is wanted; others are met by their place.
function takeChildren(box, wanted) {
  const children = Array.from(wanted.childNodes);
  const keys = new Set(children.map(keyOf));
  const own = new Map();
  for (const node of Array.from(box.childNodes)) {
    const key = keyOf(node);
    if (key && !keys.has(key)) node.remove();
    else if (key) own.set(key, node);
  }
  let place = box.firstChild;
  for (const child of children) {
    const key = keyOf(child);
    const node = key ? own.get(key) : place && !keyOf(place) && place;
    if (!node || node.nodeName !== child.nodeName) {
      box.insertBefore(child, place);
      continue;
    }
    own.delete(key);
    if (node !== place) box.insertBefore(node, place);
    else place = place.nextSibling;
    if (child.nodeType === Node.TEXT_NODE) {
      if (node.data !== child.data) node.data = child.data;
    } else {
      const isKept = isLoaded(node, child);
      takeAttributes(node, child);
      if (!isKept) takeChildren(node, child);
    }
  }
  while (place) {
    const next = place.nextSibling;
    place.remove();
    place = next;
  }
}

// Asked for once a box, not for each text: the browser lays the page out for each answer.
function selectedIn(box) {
  const { anchorNode, anchorOffset, focusNode, focusOffset } = window.getSelection();
  if (!box.contains(anchorNode) && !box.contains(focusNode)) return null;
  return { anchorNode, anchorOffset, focusNode, focusOffset };
}

// A selection that ended in a text ends at the same place of its new words.
function selectAgain({ anchorNode, anchorOffset, focusNode, focusOffset }) {
  const now = window.getSelection();
  const isKept = now.anchorNode === anchorNode && now.anchorOffset === anchorOffset
    && now.focusNode === focusNode && now.focusOffset === focusOffset;
  if (isKept || !anchorNode.isConnected || !focusNode.isConnected) return;
  const lengthOf = (end) => (end.nodeType === Node.TEXT_NODE ? end.data : end.childNodes).length;
  now.setBaseAndExtent(
    anchorNode, Math.min(anchorOffset, lengthOf(anchorNode)),
    focusNode, Math.min(focusOffset, lengthOf(focusNode)));
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
    if (change.type === "attributes") drawSoon(change.target);
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
