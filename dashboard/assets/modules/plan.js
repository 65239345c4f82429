// A plan and its form in the address, and how far it is.

import { keepInUrl } from "./address.js";
import { fieldText } from "./operations.js";

// A longer one (a file of entries) is kept with the plan (VALUE_MAX in control/views/plan_map.py).
const ADDRESS_VALUE_MAX = 200;

// The address names the plan that is shown and how its form is filled in: so Back, Forward and
// a reload show it again.
export function keepPlan(choices, choice) {
  if (!window.location.pathname.startsWith("/plan")) return;
  const shown = (choices || [])[Number(choice || 0)];
  const isFirst = window.dash_clientside.callback_context.triggered.length === 0;
  if (shown || !isFirst) keepInUrl({ made: shown && shown.name });
}

export function keepFields(values, found, defaults) {
  if (!window.location.pathname.startsWith("/plan")) return;
  const told = {};
  found.forEach(({ name }, place) => {
    const text = fieldText(values[place]);
    const isLeftOut = text === fieldText(defaults[name]) || text.length > ADDRESS_VALUE_MAX;
    told[name] = isLeftOut || isHidden(name) ? "" : text;
  });
  keepInUrl(told);
}

const isHidden = (name) => Boolean(document.querySelector(`[data-field="${name}"][hidden]`));

export function markStep(result, review, question) {
  const step = question ? 3 : review && review.length ? 2 : result ? 1 : 0;
  document.querySelectorAll("#plan-step li").forEach((item, place) => {
    item.setAttribute("aria-current", place === step ? "step" : "false");
  });
}

// What was told of another plan, or of other values.
export const forgetOutcome = () => [null, null];
