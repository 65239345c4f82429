// Gives the focus to what comes a while later.

import { click, here } from "./address.js";

// A dialog takes a while until it stands, on a busy machine a long one, and first gives the focus
// to its button.
export const FOCUS_MS_MAX = 5000;
const FOCUS_AGAIN_MS = 60;
const FOCUS_HELD_TIMES = 3;

export function focusSoon(id, until, held) {
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

export function ask(button) {
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

// A dialog opens with its cursor in a field: what is typed replaces what the form proposes there.
document.addEventListener("focusin", ({ target }) => {
  if (target.matches("input[data-autofocus]")) target.select();
});
