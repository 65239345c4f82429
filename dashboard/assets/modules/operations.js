// Opens the forms of operations, and tells why one may not be opened.

import { navigate, query } from "./address.js";
import { FOCUS_MS_MAX, focusSoon } from "./focus.js";
import { markedRows } from "./marks.js";
import { marked, scope } from "./scope.js";
import { toast, WHY_MS } from "./toast.js";

export function openForm(form, given) {
  const asked = { form, given, rows: markedRows(), at: Date.now() };
  window.dash_clientside.set_props("operation", { data: asked });
}

function reassignHere() {
  const element = marked();
  const plans = 'a.finding-step[href^="/plan"]';
  const findings = element || document.getElementById("findings");
  const step = findings && findings.querySelector(plans);
  if (step) return navigate(step.getAttribute("href").replace(/^\//, ""));
  const { topic, partition } = scope();
  return navigate("plan" + query({ topics: topic, partition }));
}

// Why forms are greyed, by their names.
let denied = {};

// What the forms that are opened here begin with. A new topic has a name of its own.
function givenHere(form) {
  const { topic, group, broker } = scope();
  return form === "create_topic" ? {} : { topic, topics: topic, group, broker };
}

// The button of a form about something here: it is also about what its key is about.
export function openHere(form, given) {
  const isAbout = Object.keys(given).length > 0;
  openForm(form, isAbout ? { ...givenHere(form), ...given } : given);
}

export function operate(form) {
  if (denied[form]) return toast(denied[form], WHY_MS);
  const here_ = scope();
  if (form === "reassign") return reassignHere();
  if (form === "produce") {
    const place = here_.topic ? "produce/" + encodeURIComponent(here_.topic) : "produce";
    return navigate(place + query({ partition: here_.partition }));
  }
  return openForm(form, givenHere(form));
}

export function noteDenied(now) {
  denied = now || {};
  document.documentElement.dataset.moves = denied.reassign ? "denied" : "allowed";
  document.querySelectorAll("[data-markup]").forEach(greyOpenersIn);
}

// Buttons that came as markup; Dash's own are greyed by greyOpeners.
export function greyOpenersIn(box) {
  for (const button of box.querySelectorAll("button[data-form]")) {
    const why = denied[button.dataset.form] || "";
    button.disabled = Boolean(why);
    button.parentElement.title = why;
  }
}

// Called only where a view has openers.
export function greyOpeners(now, openers) {
  const whys = openers.map((it) => (now || {})[it.form] || "");
  return [whys.map(Boolean), whys];
}

// Links that lead to a plan say what lacks for it, before anything follows them.
window.addEventListener("click", function (event) {
  const plans = event.target.closest && event.target.closest('main a[href^="/plan"]');
  if (!plans || !denied.reassign) return;
  event.preventDefault();
  event.stopPropagation();
  toast(denied.reassign, WHY_MS);
}, true);

// The second click of a double click changes nothing twice.
const CHANGING = ".operation-form button, #plan-confirm, #plan-yes, #move-confirm, #produce-send";
window.addEventListener("click", function (event) {
  if (event.detail < 2 || !event.target.closest || !event.target.closest(CHANGING)) return;
  event.preventDefault();
  event.stopPropagation();
}, true);

let newest = null;

// What would be confirmed is what was previewed: once a field says otherwise it is withdrawn.
// The word that a new preview asks for is typed next.
export function withdrawPreview(values, previewed, fields) {
  const was = (previewed || { values: {} }).values;
  const isSame = fields.every(
    ({ name }, n) => fieldText(values[n], name) === fieldText(was[name], name));
  if (isSame && previewed && previewed !== newest) {
    focusSoon("operation-typed", Date.now() + FOCUS_MS_MAX);
  }
  newest = previewed;
  return [!isSame, isSame];
}

// Of a form with a chooser only the fields of its choice are shown.
export function showFields(choice) {
  document.querySelectorAll("#content [data-only-for]").forEach((field) => {
    const choices = field.dataset.onlyFor;
    field.hidden = Boolean(choices) && !choices.split(" ").includes(choice);
  });
}

// A field of a form as the server takes it: blanks around a group's name are part of it.
export function fieldText(value, name) {
  const text = value === null || value === undefined || value === "unchecked" ? "" : String(value);
  return name === "group" ? text : text.trim();
}
