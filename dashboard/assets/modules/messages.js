// Values of messages that the page does not carry: copied, or laid out where they are opened.

import { toast, WHY_MS } from "./toast.js";

const SHOWN_IN = "details[data-loads]";

// As the bytes are: also a mark of byte order at their begin.
async function textAt(path) {
  const cluster = document.documentElement.dataset.cluster;
  const answer = await window.fetch((cluster ? "/@" + encodeURIComponent(cluster) : "") + path);
  const text = new TextDecoder("utf-8", { ignoreBOM: true }).decode(await answer.arrayBuffer());
  if (!answer.ok) throw new Error(text.trim());
  return text;
}

export async function copyValue(path) {
  if (!navigator.clipboard) return toast("this browser lets no page copy");
  try {
    await navigator.clipboard.writeText(await textAt(path));
    return toast("copied");
  } catch (error) {
    return toast(`not copied: ${error.message}`, WHY_MS);
  }
}

function load(details) {
  const place = details.querySelector("pre");
  const path = details.dataset.loads;
  if (!details.open || place.dataset.of === path) return;
  place.dataset.of = path;
  place.textContent = "…";
  const show = (words) => {
    if (place.dataset.of === path) place.textContent = words;
  };
  textAt(path).then(show, (error) => show(error.message));
}

// Also where another message has come to a place that was open.
export function loadOpened(box) {
  for (const details of box.querySelectorAll(SHOWN_IN)) load(details);
}

// What was loaded stays while its message does.
export const isLoaded = (place, wanted) =>
  place.nodeName === "DETAILS" && Boolean(place.dataset.loads) &&
  place.dataset.loads === wanted.dataset.loads;

document.addEventListener("toggle", ({ target }) => {
  if (target.matches(SHOWN_IN)) load(target);
}, true);
